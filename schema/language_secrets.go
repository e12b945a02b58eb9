package schema

import "strings"

// secretsBlocks are the kinds of secrets block, of which a site has one.
func secretsBlocks() []*block {
	backend := &label{name: "BACKEND", doc: "`env`, `vault`, `onepassword`, `age` or `command`", example: "vault"}
	const doc = "Where `secret(ITEM, FIELD)` is read. The values live in memory only."
	row := func(variant, text string) *block {
		return &block{name: "secrets", label: backend, variant: variant, required: true, since: version01, doc: doc + " `" + variant + "`: " + text}
	}
	env := row("env", "the environment variable PREFIX_ITEM_FIELD in upper case, everything but letters and digits replaced by `_`. For laboratories, whose environment has `ENROLL_LAB`: every run outside of one warns.")
	env.attrs = []attribute{
		{name: "prefix", typ: textType, fallback: "ENROLL_SECRET", check: isVariableName, example: `"ENROLL_SECRET"`, since: version01,
			doc: "The first part of the variables' names.", effect: "which variables are read"},
	}
	vault := row("vault", "version 2 of the KV engine of Vault or OpenBao. The token is given, or got by a login: one of `token_env`, `token_file`, `app_role` and `kubernetes`.")
	vault.attrs = []attribute{
		{name: "url", typ: textType, required: true, check: isServiceURL, example: `"https://vault.example.net:8200"`, since: version01,
			doc: "The vault's base address, without `/v1`.", effect: "where secrets are read"},
		{name: "namespace", typ: textType, check: isVaultPath, fallbackDoc: "none: the root namespace", example: `"infra/lon14"`, since: version01,
			doc: "The namespace of the engine and of the login.", effect: "which engine is read"},
		{name: "mount", typ: textType, fallback: "secret", check: isVaultPath, example: `"secret"`, since: version01,
			doc: "Where the KV engine is mounted.", effect: "which engine is read"},
		{name: "prefix", typ: textType, fallbackDoc: "none", mayBeEmpty: true, check: isVaultPath, example: `"lon14"`, since: version01,
			doc: "The path before the item's name.", effect: "which items are read"},
		callerEnv("token_env", "VAULT_TOKEN", "the vault's token", "login at the vault"),
		callerFile("token_file", "the vault's token", "login at the vault"),
		caFile(), timeout("30s"),
	}
	vault.blocks = []*block{
		{
			name: "app_role", since: version01,
			doc: "Log in with an AppRole. The role should be bound to enroll's machines and its policy should grant `read` only.",
			attrs: []attribute{
				{name: "mount", typ: textType, fallback: "approle", check: isVaultPath, example: `"approle"`, since: version01,
					doc: "Where the AppRole engine is mounted.", effect: "login at the vault"},
				{name: "role_id", typ: textType, required: true, check: isName, example: `"59d6d1ca-47bb-4e7e-a40b-8be3bc5a0ba8"`, since: version01,
					doc: "The role's id, which is no secret.", effect: "login at the vault"},
				callerEnv("secret_id_env", "VAULT_SECRET_ID", "the role's secret id", "login at the vault"),
				callerFile("secret_id_file", "the role's secret id", "login at the vault"),
			},
		},
		{
			name: "kubernetes", since: version01,
			doc: "Log in with the service account of the pod that enroll runs in.",
			attrs: []attribute{
				{name: "mount", typ: textType, fallback: "kubernetes", check: isVaultPath, example: `"kubernetes"`, since: version01,
					doc: "Where the Kubernetes engine is mounted.", effect: "login at the vault"},
				{name: "role", typ: textType, required: true, check: isName, example: `"enroll"`, since: version01,
					doc: "The role of the Kubernetes engine.", effect: "login at the vault"},
				{name: "token_file", typ: textType, path: true, check: isPath, fallback: "/var/run/secrets/kubernetes.io/serviceaccount/token", example: `"/var/run/secrets/kubernetes.io/serviceaccount/token"`, since: version01,
					doc: "The file with the service account's token. A relative path begins at the folder of the file that sets it.", effect: "login at the vault"},
			},
		},
	}
	connect := row("onepassword", "a vault of 1Password Connect. ITEM is an item's title or id. FIELD is a field's label; SECTION.LABEL where a label stands twice; a field's id where no label is the same.")
	connect.attrs = []attribute{
		{name: "url", typ: textType, required: true, check: isServiceURL, example: `"https://op-connect.lon14.example.net"`, since: version01,
			doc: "The Connect server's base address, without `/v1`.", effect: "where secrets are read"},
		{name: "vault", typ: textType, required: true, check: isConnectVault, example: `"lon14"`, since: version01,
			doc: "The vault's title or id.", effect: "which items are read"},
		callerEnv("token_env", "OP_CONNECT_TOKEN", "the Connect server's token", "login at the Connect server"),
		callerFile("token_file", "the Connect server's token", "login at the Connect server"),
		caFile(), timeout("30s"),
	}
	age := row("age", "a file encrypted with age, for sites without a server. Inside is JSON: `{\"ITEM\": {\"FIELD\": \"value\"}}`. It may be in Git; the identity may not.")
	age.attrs = []attribute{
		{name: "file", typ: textType, required: true, path: true, check: isPath, example: `"secrets.age"`, since: version01,
			doc: "The encrypted file, binary or armored. A relative path begins at the folder of the file that sets it.", effect: "where secrets are read"},
		callerEnv("identity_env", "ENROLL_AGE_IDENTITY", "the age identity (`AGE-SECRET-KEY-1…`) or the SSH private key that decrypts it", "who can read the file"),
		callerFile("identity_file", "the age identity or the SSH private key that decrypts it", "who can read the file"),
	}
	limit := timeout("30s")
	limit.doc, limit.effect = "How long one run of the program may take.", "when the program is ended"
	command := row("command", "a program that prints JSON, such as `op`, `sops`, or a script around `pass`. It is run without a shell, with enroll's environment and nothing on its standard input.")
	command.attrs = []attribute{
		{name: "argv", typ: textListType, required: true, mayRepeat: true, example: `["op", "item", "get", "{item}", "--vault", "lon14", "--format", "json"]`, since: version01,
			doc:    "The program and its arguments. A program with a slash in its name that is no absolute path begins at the site's folder. With `{item}` in an argument it is run once for each item and prints that item: `{\"FIELD\": \"value\"}`, or what `op` prints. Without, it is run once and prints all: `{\"ITEM\": {\"FIELD\": \"value\"}}`.",
			effect: "where secrets are read"},
		limit,
	}
	return []*block{env, vault, connect, age, command}
}

// callerEnv and callerFile say where the credential is that enroll itself shows.
func callerEnv(name, fallback, what, effect string) attribute {
	return attribute{name: name, typ: textType, fallback: fallback, check: isVariableName, example: `"` + fallback + `"`, since: version01,
		doc: "The environment variable that holds " + what + ".", effect: effect}
}

func callerFile(name, what, effect string) attribute {
	return attribute{name: name, typ: textType, path: true, check: isPath, fallbackDoc: "none: the environment variable is read", example: `"/run/enroll/` + strings.TrimSuffix(name, "_file") + `"`, since: version01,
		doc: "A file that holds " + what + ", instead of the environment variable. A relative path begins at the folder of the file that sets it.", effect: effect}
}

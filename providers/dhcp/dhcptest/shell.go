package dhcptest

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// ran is the outcome of a command.
type ran struct {
	stdout, stderr string
	status         int
	hangs          bool // it does not come back
}

// mutates reports whether a command changes the machine.
func mutates(command string) bool {
	command = strings.ReplaceAll(command, "sudo -n -l /usr/bin/systemctl", "") // which only asks
	return strings.Contains(command, "systemctl reload") || strings.Contains(command, "systemctl restart")
}

// word is one word of a command; literal says that it was quoted and is not
// expanded.
type word struct {
	text    string
	literal bool
}

// statement is a simple command and the operator before it.
type statement struct {
	after string // "", ";", "||" or "&&"
	words []word
}

// parseShell reads the part of the shell's language that the commands use:
// words, both kinds of quotes, ; && ||. Anything else is refused, so that a
// command that needs more shows here and not on a real server.
func parseShell(text string) ([]statement, error) {
	var out []statement
	current := statement{}
	var b strings.Builder
	inWord, quoted := false, false
	flushWord := func() {
		if inWord {
			current.words = append(current.words, word{text: b.String(), literal: quoted})
		}
		b.Reset()
		inWord, quoted = false, false
	}
	flush := func(next string) error {
		flushWord()
		if len(current.words) == 0 {
			return fmt.Errorf("syntax error near %q", next)
		}
		out = append(out, current)
		current = statement{after: next}
		return nil
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\'', '"':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				return nil, fmt.Errorf("unterminated quoted string")
			}
			inside := text[i+1 : i+1+end]
			if c == '"' && strings.ContainsAny(inside, "$`\\") {
				return nil, fmt.Errorf("no expansion in double quotes here: %q", inside)
			}
			b.WriteString(inside)
			inWord, quoted = true, true
			i += end + 1
		case '\\':
			if i+1 == len(text) {
				return nil, fmt.Errorf("backslash at the end")
			}
			i++
			b.WriteByte(text[i])
			inWord, quoted = true, true
		case ' ':
			flushWord()
		case ';':
			if err := flush(";"); err != nil {
				return nil, err
			}
		case '|', '&':
			if i+1 == len(text) || text[i+1] != c {
				return nil, fmt.Errorf("no pipes and jobs here")
			}
			i++
			if err := flush(string([]byte{c, c})); err != nil {
				return nil, err
			}
		case '\n', '<', '>', '(', ')', '`', '{', '}', '!', '~':
			return nil, fmt.Errorf("unexpected %q", string(c))
		default:
			b.WriteByte(c)
			inWord = true
		}
	}
	if err := flush("end"); err != nil {
		return nil, err
	}
	return out, nil
}

// shell is one running shell.
type shell struct {
	s        *Server
	path     string
	cwd      string
	user     string // as whom programs read
	out, err bytes.Buffer
	status   int
	over     bool
	hangs    bool
}

// login runs a command as sshd does: through the account's login shell, with
// its PATH, after its profile has had its say.
func (s *Server) login(command string) ran {
	s.tick()
	sh := &shell{s: s, path: "/usr/local/bin:/usr/bin:/bin:/usr/games", cwd: "/", user: s.options.User}
	sh.out.WriteString(s.behaviour.Profile)
	sh.run(command)
	return ran{stdout: sh.out.String(), stderr: sh.err.String(), status: sh.status, hangs: sh.hangs}
}

func (sh *shell) run(text string) {
	statements, err := parseShell(text)
	if err != nil {
		fmt.Fprintf(&sh.err, "sh: 1: %v\n", err)
		sh.status = 2
		return
	}
	for _, st := range statements {
		if sh.over || sh.hangs {
			return
		}
		if st.after == "||" && sh.status == 0 || st.after == "&&" && sh.status != 0 {
			continue
		}
		sh.status = sh.simple(sh.expand(st.words))
	}
}

// expand replaces $? and a lone *.
func (sh *shell) expand(words []word) []string {
	var out []string
	for _, w := range words {
		switch {
		case w.literal:
			out = append(out, w.text)
		case w.text == "*":
			out = append(out, sh.s.tree.glob(sh.cwd)...)
		default:
			out = append(out, strings.ReplaceAll(w.text, "$?", fmt.Sprint(sh.status)))
		}
	}
	return out
}

// simple runs one command: a builtin, or a program.
func (sh *shell) simple(args []string) int {
	if name, value, found := strings.Cut(args[0], "="); found && len(args) == 1 {
		if name == "PATH" {
			sh.path = value
		}
		return 0
	}
	switch args[0] {
	case "exec":
		status := sh.simple(args[1:])
		sh.over = true
		return status
	case "exit":
		sh.over = true
		var status int
		if _, err := fmt.Sscan(args[1], &status); err != nil {
			return 2
		}
		return status
	case "export", "true":
		return 0
	case "echo":
		fmt.Fprintln(&sh.out, strings.Join(args[1:], " "))
		return 0
	case "cd":
		return sh.cd(args[1:])
	case "test":
		return sh.test(args[1:])
	}
	program := sh.find(args[0])
	if program == nil {
		fmt.Fprintf(&sh.err, "sh: 1: %s: not found\n", args[0])
		return 127
	}
	return program(sh, args[1:])
}

func (sh *shell) cd(args []string) int {
	if len(args) == 2 && args[0] == "--" {
		n := sh.s.tree.nodes[path.Clean(args[1])]
		if n != nil && n.mode.IsDir() && n.may(sh.s.options.User, 1) {
			sh.cwd = path.Clean(args[1])
			return 0
		}
	}
	fmt.Fprintf(&sh.err, "sh: 1: cd: can't cd to %s\n", args[len(args)-1])
	return 2
}

func (sh *shell) test(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(&sh.err, "sh: 1: test: unexpected operator")
		return 2
	}
	at := args[1]
	if !path.IsAbs(at) {
		at = path.Join(sh.cwd, at)
	}
	n := sh.s.tree.nodes[path.Clean(at)]
	holds := false
	switch args[0] {
	case "-e":
		holds = n != nil
	case "-w":
		holds = n != nil && n.may(sh.s.options.User, 2)
	case "-r":
		holds = n != nil && n.may(sh.s.options.User, 4)
	case "-h":
		holds = n != nil && at == sh.s.options.Directory && sh.s.behaviour.SymlinkFolder
	default:
		fmt.Fprintln(&sh.err, "sh: 1: test: unexpected operator")
		return 2
	}
	if !holds {
		return 1
	}
	return 0
}

// find looks a program up in PATH; /bin is /usr/bin, as on Debian 12.
func (sh *shell) find(name string) func(*shell, []string) int {
	programs := map[string]func(*shell, []string) int{
		"/usr/bin/sh":         runShell,
		"/usr/bin/sha256sum":  runHash,
		"/usr/bin/grep":       runGrep,
		"/usr/bin/ls":         runList,
		"/usr/bin/date":       runDate,
		"/usr/bin/cat":        runCat,
		"/usr/bin/sudo":       runSudo,
		"/usr/bin/systemctl":  runSystemctl,
		"/usr/bin/journalctl": runJournalctl,
		"/usr/bin/find":       runFind,
		"/usr/bin/touch":      runTouch,
		"/usr/bin/stat":       runStat,
		"/usr/bin/ss":         runSockets,
	}
	switch sh.s.options.Service {
	case serviceKea:
		programs[sh.s.keaProgram()] = runKea
	case serviceISC:
		programs["/usr/sbin/dhcpd"] = runDhcpd
	default:
		programs["/usr/sbin/dnsmasq"] = runDnsmasq
	}
	if sh.s.behaviour.NoHash {
		delete(programs, "/usr/bin/sha256sum")
	}
	places := []string{name}
	if !strings.Contains(name, "/") {
		places = nil
		for _, dir := range strings.Split(sh.path, ":") {
			places = append(places, path.Join(dir, name))
		}
	}
	for _, p := range places {
		for from, to := range map[string]string{"/bin/": "/usr/bin/", "/sbin/": "/usr/sbin/"} {
			if strings.HasPrefix(p, from) {
				p = to + strings.TrimPrefix(p, from)
			}
		}
		if f := programs[p]; f != nil {
			return f
		}
	}
	return nil
}

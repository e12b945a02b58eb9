package dhcptest

import (
	"crypto/sha256"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The programs of the machine. Each knows the arguments that somebody uses and
// refuses others.

func runShell(sh *shell, args []string) int {
	if len(args) > 5 && args[0] == "-c" && args[2] == "follow" {
		return runFollow(sh, args[3], args[5:])
	}
	if len(args) != 2 || args[0] != "-c" {
		fmt.Fprintln(&sh.err, "sh: only -c here")
		return 2
	}
	inner := &shell{s: sh.s, path: sh.path, cwd: sh.cwd, user: sh.user}
	inner.run(args[1])
	sh.hangs = inner.hangs
	sh.out.Write(inner.out.Bytes())
	sh.err.Write(inner.err.Bytes())
	return inner.status
}

// inclusions are the names of files that a configuration mentions.
var inclusions = regexp.MustCompile(`(?:include|conf-file|conf-dir|dhcp-hostsfile|dhcp-hostsdir)\s*[="]\s*(/[A-Za-z0-9._/-]+)`)

// runFollow is the script that reads a configuration with all that it includes.
// Package dhcp holds it, and a test of its own runs it in a real shell.
func runFollow(sh *shell, own string, names []string) int {
	seen := map[string]bool{}
	for depth := 0; len(names) > 0 && depth < 6; depth++ {
		var next []string
		for _, name := range names {
			if name == own || strings.HasPrefix(name, own+"/") || seen[name] {
				continue
			}
			seen[name] = true
			n, errno := sh.open(name)
			switch {
			case errno == "Is a directory":
				fmt.Fprintf(&sh.out, "%s/\x00\n", name)
				for _, inside := range sh.s.tree.glob(name) {
					next = append(next, path.Join(name, inside))
				}
			case errno == "Permission denied":
				fmt.Fprintf(&sh.out, "!%s\x00\n", name)
			case n == nil:
			case len(n.data) == 0:
				fmt.Fprintf(&sh.out, "%s\x00\n", name)
			default:
				runGrep(sh, []string{"-HaZ", "", "--", name})
				for _, m := range inclusions.FindAllStringSubmatch(string(n.data), -1) {
					next = append(next, m[1])
				}
			}
		}
		names = next
	}
	return 0
}

// open reads a file for the account; the text is coreutils' for errno.
func (sh *shell) open(name string) (*node, string) {
	p := name
	if !path.IsAbs(p) {
		p = path.Join(sh.cwd, name)
	}
	n := sh.s.tree.nodes[path.Clean(p)]
	switch {
	case n == nil:
		return nil, "No such file or directory"
	case n.mode.IsDir():
		return nil, "Is a directory"
	case !n.may(sh.s.options.User, 4):
		return nil, "Permission denied"
	}
	return n, ""
}

func runHash(sh *shell, args []string) int {
	if len(args) < 2 || args[0] != "--" {
		fmt.Fprintln(&sh.err, "sha256sum: want -- FILE...")
		return 1
	}
	status := 0
	for _, name := range args[1:] {
		n, errno := sh.open(name)
		if n == nil {
			fmt.Fprintf(&sh.err, "sha256sum: %s: %s\n", name, errno)
			status = 1
			continue
		}
		escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name)
		if escaped != name {
			sh.out.WriteByte('\\')
		}
		fmt.Fprintf(&sh.out, "%x  %s\n", sha256.Sum256(n.data), escaped)
	}
	return status
}

func runGrep(sh *shell, args []string) int {
	if len(args) == 3 && args[0] == "-q" {
		n, errno := sh.open(args[2])
		switch {
		case n == nil:
			fmt.Fprintf(&sh.err, "grep: %s: %s\n", args[2], errno)
			return 2
		case strings.Contains(string(n.data), args[1]):
			return 0
		}
		return 1
	}
	if len(args) < 4 || args[0] != "-HaZ" || args[1] != "" || args[2] != "--" {
		fmt.Fprintln(&sh.err, "grep: want -HaZ \"\" -- FILE...")
		return 2
	}
	status, found := 0, false
	for _, name := range args[3:] {
		n, errno := sh.open(name)
		if n == nil {
			fmt.Fprintf(&sh.err, "grep: %s: %s\n", name, errno)
			status = 2
			continue
		}
		if len(n.data) == 0 {
			continue
		}
		for _, line := range strings.Split(strings.TrimSuffix(string(n.data), "\n"), "\n") {
			found = true
			fmt.Fprintf(&sh.out, "%s\x00%s\n", name, line)
		}
	}
	if status == 0 && !found {
		return 1
	}
	return status
}

func runList(sh *shell, args []string) int {
	if len(args) > 1 || len(args) == 1 && args[0] != "-p" {
		fmt.Fprintln(&sh.err, "ls: want nothing or -p")
		return 2
	}
	for _, name := range sh.s.tree.list(sh.cwd) {
		switch {
		case strings.HasPrefix(name, "."):
		case len(args) == 1 && sh.s.tree.nodes[path.Join(sh.cwd, name)].mode.IsDir():
			fmt.Fprintln(&sh.out, name+"/")
		default:
			fmt.Fprintln(&sh.out, name)
		}
	}
	return 0
}

// runFind knows one search: temporary files that are old.
func runFind(sh *shell, args []string) int {
	if strings.Join(args, " ") != ". -maxdepth 1 -name .*.enroll-* -mmin +60" {
		fmt.Fprintln(&sh.err, "find: unknown predicate")
		return 1
	}
	now := sh.s.now()
	for _, name := range sh.s.tree.list(sh.cwd) {
		n := sh.s.tree.nodes[path.Join(sh.cwd, name)]
		if strings.HasPrefix(name, ".") && strings.Contains(name[1:], ".enroll-") && now.Sub(n.mtime) > time.Hour {
			fmt.Fprintln(&sh.out, "./"+name)
		}
	}
	return 0
}

func runTouch(sh *shell, args []string) int {
	for _, name := range args {
		n := sh.s.tree.nodes[path.Join(sh.cwd, name)]
		if n == nil || !n.may(sh.s.options.User, 2) {
			fmt.Fprintf(&sh.err, "touch: cannot touch '%s': Permission denied\n", name)
			return 1
		}
		n.mtime = sh.s.now()
	}
	return 0
}

// runStat tells when a file was changed last, in seconds.
func runStat(sh *shell, args []string) int {
	if len(args) != 3 || args[0] != "-c" || args[1] != "%Y" {
		fmt.Fprintln(&sh.err, "stat: want -c %Y FILE")
		return 1
	}
	n := sh.s.tree.nodes[path.Join(sh.cwd, args[2])]
	if n == nil {
		fmt.Fprintf(&sh.err, "stat: cannot statx '%s': No such file or directory\n", args[2])
		return 1
	}
	fmt.Fprintln(&sh.out, n.mtime.Unix())
	return 0
}

// runSockets tells one UDP socket of a Kea that serves. dhcpd and dnsmasq have
// theirs as long as they live.
func runSockets(sh *shell, args []string) int {
	filter, socket := "-Hlun sport = :67", "UNCONN 0      0          192.0.2.1:67        0.0.0.0:*"
	if sh.s.options.IPv6 {
		filter, socket = "-Hlun sport = :547", "UNCONN 0      0          [ff02::1:2]%br0:547        [::]:*"
	}
	if strings.Join(args, " ") != filter {
		fmt.Fprintln(&sh.err, "ss: want "+filter)
		return 255
	}
	if d := &sh.s.daemon; d.active && !d.deaf {
		fmt.Fprintln(&sh.out, socket)
	}
	return 0
}

func runDate(sh *shell, args []string) int {
	if len(args) != 1 || args[0] != "+%s.%N" {
		fmt.Fprintf(&sh.err, "date: want %s\n", "+%s.%N")
		return 1
	}
	now := sh.s.now()
	fmt.Fprintf(&sh.out, "%d.%09d\n", now.Unix(), now.Nanosecond())
	return 0
}

// runCat knows how long ago the machine booted, which no step of the clock changes.
func runCat(sh *shell, args []string) int {
	if len(args) != 1 || args[0] != "/proc/uptime" {
		fmt.Fprintln(&sh.err, "cat: want /proc/uptime")
		return 1
	}
	up := sh.s.options.Now().Sub(sh.s.booted).Seconds()
	fmt.Fprintf(&sh.out, "%.2f %.2f\n", up, up)
	return 0
}

// runSudo knows three rules, those of the reference's sudoers file, and never
// asks for a password: -n. With -l it tells whether it would.
func runSudo(sh *shell, args []string) int {
	unit := sh.s.options.Unit
	if len(args) < 2 || args[0] != "-n" {
		fmt.Fprintln(&sh.err, "sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper")
		return 1
	}
	list := args[1] == "-l" // whether the command is allowed, without running it
	if list {
		args = args[1:]
	}
	command := strings.Join(args[1:], " ")
	if sh.s.behaviour.NoSudo || command != "/usr/bin/systemctl reload "+unit && command != "/usr/bin/systemctl restart "+unit && command != sh.s.check() {
		fmt.Fprintln(&sh.err, "sudo: a password is required")
		return 1
	}
	if list {
		fmt.Fprintln(&sh.out, command)
		return 0
	}
	if args[1] != "/usr/bin/systemctl" {
		root := &shell{s: sh.s, path: sh.path, cwd: sh.cwd, user: "root"}
		status := root.find(args[1])(root, args[2:])
		sh.out.Write(root.out.Bytes())
		sh.err.Write(root.err.Bytes())
		return status
	}
	return systemctl(sh, args[2:], true)
}

// check is the command with which the server checks its own configuration.
func (s *Server) check() string {
	switch s.options.Service {
	case serviceKea:
		return s.keaProgram() + " -t " + s.form().config
	case serviceISC:
		return "/usr/sbin/dhcpd -t " + s.iscFamily() + " -cf " + s.form().config
	}
	return ""
}

func runSystemctl(sh *shell, args []string) int { return systemctl(sh, args, false) }

func systemctl(sh *shell, args []string, root bool) int {
	s := sh.s
	if s.behaviour.NoSystemd {
		fmt.Fprintln(&sh.err, "System has not been booted with systemd as init system (PID 1). Can't operate.\nFailed to connect to bus: Host is down")
		return 1
	}
	switch {
	case len(args) == 4 && args[0] == "show" && args[1] == "-p":
		return show(sh, strings.Split(args[2], ","), args[3])
	case len(args) == 2 && args[0] == "is-active":
		if args[1] == s.options.Unit && (s.daemon.active || s.daemon.exited) {
			fmt.Fprintln(&sh.out, "active")
			return 0
		}
		fmt.Fprintln(&sh.out, "inactive")
		return 3
	case len(args) == 2 && (args[0] == "reload" || args[0] == "restart"):
		if !root {
			fmt.Fprintf(&sh.err, "Failed to %s %s.service: Interactive authentication required.\nSee system logs and 'systemctl status %s.service' for details.\n", args[0], args[1], args[1])
			return 1
		}
		if args[0] == "restart" {
			return restart(sh)
		}
		if s.options.Service != serviceDnsmasq {
			fmt.Fprintf(&sh.err, "Failed to reload %s.service: Job type reload is not applicable for unit %s.service.\n", args[1], args[1])
			return 1
		}
		return reload(sh)
	}
	fmt.Fprintf(&sh.err, "Unknown command verb %s.\n", strings.Join(args, " "))
	return 1
}

func show(sh *shell, properties []string, unit string) int {
	d := &sh.s.daemon
	values := map[string]string{"LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead", "Result": "success", "MainPID": "0", "ExecMainStartTimestamp": "", "ExecMainStatus": "0"}
	if unit == sh.s.options.Unit || unit == sh.s.options.Unit+".service" {
		values["LoadState"], values["Result"] = "loaded", d.result
		values["ExecMainStartTimestamp"] = d.started.UTC().Format("Mon 2006-01-02 15:04:05 MST")
		values["ActiveState"], values["SubState"] = "failed", "failed"
		switch {
		case d.active:
			values["ActiveState"], values["SubState"], values["MainPID"] = "active", "running", strconv.Itoa(d.pid)
		case d.exited && sh.s.options.IPv6: // the daemon of DHCPv4 lives on in the same unit
			values["ActiveState"], values["SubState"] = "active", "running"
		case d.exited: // the generated unit of dhcpd remains active after exit
			values["ActiveState"], values["SubState"] = "active", "exited"
		}
	}
	// systemd prints in its own order, whatever was asked first.
	for _, key := range []string{"MainPID", "Result", "ExecMainStartTimestamp", "ExecMainStatus", "LoadState", "ActiveState", "SubState"} {
		for _, p := range properties {
			if p == key {
				fmt.Fprintf(&sh.out, "%s=%s\n", key, values[key])
			}
		}
	}
	return 0
}

// reload is ExecReload: a SIGHUP.
func reload(sh *shell) int {
	s := sh.s
	if !s.daemon.active {
		fmt.Fprintf(&sh.err, "%s.service is not active, cannot reload.\n", s.options.Unit)
		return 1
	}
	s.stepBack()
	s.log("Reloading %s.service - dnsmasq - A lightweight DHCP and caching DNS server...", s.options.Unit)
	s.log("Reloaded %s.service - dnsmasq - A lightweight DHCP and caching DNS server.", s.options.Unit)
	if s.behaviour.HangRestart {
		sh.hangs = true
		return 0
	}
	s.rereadHosts()
	s.afterLoad()
	return 0
}

// restart obeys systemd's start limit: the sixth start within 10 s is refused
// and leaves the service down.
func restart(sh *shell) int {
	s := sh.s
	s.stepBack()
	now := s.now()
	s.end("success") // what runs is stopped first
	s.daemon.exited = false
	if s.behaviour.HangRestart {
		sh.hangs = true
		return 0
	}
	recent := 0
	for _, at := range s.daemon.starts {
		if now.Sub(at) < 10*time.Second {
			recent++
		}
	}
	if recent >= 5 {
		s.daemon.result = "start-limit-hit"
		fmt.Fprintf(&sh.err, "Job for %s.service failed.\nSee \"systemctl status %s.service\" and \"journalctl -xeu %s.service\" for details.\n", s.options.Unit, s.options.Unit, s.options.Unit)
		return 1
	}
	s.daemon.starts = append(s.daemon.starts, now)
	s.startDaemon()
	if !s.daemon.active && s.options.Service == serviceISC && !s.daemon.exited {
		fmt.Fprintf(&sh.err, "Job for %s.service failed because the control process exited with error code.\nSee \"systemctl status %s.service\" and \"journalctl -xeu %s.service\" for details.\n", s.options.Unit, s.options.Unit, s.options.Unit)
		return 1
	}
	return 0
}

var journalArgs = regexp.MustCompile(`^-u (\S+) --since @([0-9]{1,12})(\.[0-9]{1,6})? -o cat --no-pager -n ([0-9]+)$`)

func runJournalctl(sh *shell, args []string) int {
	m := journalArgs.FindStringSubmatch(strings.Join(args, " "))
	if m == nil {
		fmt.Fprintln(&sh.err, "journalctl: want -u UNIT --since @TIME -o cat --no-pager -n NUM")
		return 1
	}
	if sh.s.behaviour.NoJournal {
		fmt.Fprintln(&sh.err, "Hint: You are currently not seeing messages from other users and the system.\n      Users in groups 'adm', 'systemd-journal' can see all messages.\n      Pass -q to turn off this notice.\nNo journal files were opened due to insufficient permissions.")
		return 1
	}
	sec, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return 1
	}
	nanos, err := strconv.ParseInt((strings.TrimPrefix(m[3], ".") + "000000000")[:9], 10, 64)
	if err != nil {
		return 1
	}
	since := time.Unix(sec, nanos)
	var lines []string
	for _, l := range sh.s.daemon.journal {
		if m[1] == sh.s.options.Unit && !l.at.Before(since) {
			lines = append(lines, l.text)
		}
	}
	if most, err := strconv.Atoi(m[4]); err == nil && len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	if len(lines) == 0 {
		lines = []string{"-- No entries --"}
	}
	fmt.Fprintln(&sh.out, strings.Join(lines, "\n"))
	return 0
}

// runDnsmasq is the validator that never opens a host file.
func runDnsmasq(sh *shell, args []string) int {
	if len(args) != 1 || args[0] != "--test" {
		fmt.Fprintln(&sh.err, "\ndnsmasq: bad command line options: try --help")
		return 1
	}
	fmt.Fprintln(&sh.err, "dnsmasq: syntax check OK.")
	return 0
}

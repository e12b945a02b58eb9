package bmc

import (
	"encoding/json"
	"fmt"
	"strings"
)

// message is one entry of @Message.ExtendedInfo, read as tolerantly as makers
// write: MessageArgs may be a string, the array may be an object or stand at
// the top level, and code may be all there is.
type message struct {
	id         string // without registry and version: PropertyNotWritable, SYS410
	full       string // as sent
	text       string
	resolution string
	args       []string
}

// messages reads the words of an error body; nil when there are none.
func messages(body []byte) []message {
	var top map[string]any
	if json.Unmarshal(body, &top) != nil {
		return nil
	}
	var out []message
	if e, ok := top["error"].(map[string]any); ok {
		out = append(out, extended(e["@Message.ExtendedInfo"])...)
		if len(out) == 0 {
			full, _ := e["code"].(string)
			text, _ := e["message"].(string)
			if full != "" || text != "" {
				out = append(out, message{id: shortID(full), full: full, text: text})
			}
		}
	}
	return append(out, extended(top["@Message.ExtendedInfo"])...)
}

func extended(v any) []message {
	list, ok := v.([]any)
	if !ok {
		if _, single := v.(map[string]any); !single {
			return nil
		}
		list = []any{v}
	}
	var out []message
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		full, _ := m["MessageId"].(string)
		text, _ := m["Message"].(string)
		resolution, _ := m["Resolution"].(string)
		one := message{id: shortID(full), full: full, text: text, resolution: resolution, args: argsOf(m["MessageArgs"])}
		if full != "" || text != "" {
			out = append(out, one)
		}
	}
	return out
}

// argsOf reads MessageArgs: an array of strings, of numbers, or a string that
// looks like one.
func argsOf(v any) []string {
	if s, ok := v.(string); ok {
		if json.Unmarshal([]byte(s), &v) != nil {
			v = []any{s}
		}
	}
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	var out []string
	for _, item := range list {
		if item != nil {
			out = append(out, fmt.Sprint(item))
		}
	}
	return out
}

// shortID cuts registry and version off: versions differ between firmwares.
func shortID(full string) string { return full[strings.LastIndexByte(full, '.')+1:] }

// words joins messages for people.
func words(list []message) string {
	var parts []string
	for _, m := range list {
		part := strings.TrimSpace(m.text)
		switch {
		case part == "":
			part = m.full
		case m.full != "":
			part = m.full + ": " + part
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// has finds a message by its short id.
func has(list []message, ids ...string) bool {
	for _, m := range list {
		for _, id := range ids {
			if m.id == id {
				return true
			}
		}
	}
	return false
}

// Message ids that decide how a refusal is treated. Sources: the Base registry
// of the DMTF, Dell's event and error messages, AMI's and Supermicro's
// registries.
var (
	idsPasswordChange = []string{"PasswordChangeRequired", "SWC1908", "RAC1260"}                                                                                                                                             //nolint:gochecknoglobals // a constant table
	idsSessionLimit   = []string{"SessionLimitExceeded", "RAC0218"}                                                                                                                                                          //nolint:gochecknoglobals // a constant table
	idsLocked         = []string{"AccountLockout", "AccountLockup", "ErrorAccountLocked"}                                                                                                                                    //nolint:gochecknoglobals // a constant table
	idsBusy           = []string{"SYS518", "SWC0700", "RAC0508", "RAC0509", "LC060", "PatchInProgress", "ResourceInUse", "ServiceShuttingDown", "ServiceInUnknownState", "SYS431", "JCP030", "ActionInProgress", "WaitTime"} //nolint:gochecknoglobals // a constant table
)

// idsLockdown: an iDRAC, or a Supermicro, is locked down.
var idsLockdown = []string{"SYS406", "SYS291", "RAC1201", "BIOS031", "OemSystemLockdownEnabled"} //nolint:gochecknoglobals // a constant table

// idsCommitted: settings wait for the next boot, and others are refused until then.
var idsCommitted = []string{"SYS011", "RAC011", "RAC052", "RAC0773", "BIOS006", "BIOS007", "RAC0679", "SYS074"} //nolint:gochecknoglobals // a constant table

const idBusyPrefix = "ServiceTemporarilyUnavailable" // Base, and AMI's …DueToHostBooting, …DueToMutex, …DueToBMCBooting

func busy(list []message) bool {
	for _, m := range list {
		if strings.HasPrefix(m.id, idBusyPrefix) {
			return true
		}
	}
	return has(list, idsBusy...)
}

package bmctest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// Attribute is one row of a BIOS attribute registry.
type Attribute struct {
	Name     string
	Value    any      // as the machine begins
	Values   []string // of an enumeration
	Display  []string // the display names of Values, where they differ
	ReadOnly bool
	Low, Up  int // bounds of an integer, when Up > Low
}

// Rule is one dependency of a BIOS attribute registry: while From holds, a property
// of the attribute To has a value.
type Rule struct {
	To, Property string
	Value        any
	From         []Term
}

// Term is one condition of a rule.
type Term struct {
	Attribute, Condition, Value string
	Terms                       string // MapTerms
}

// Rules are the dependencies that the simulated machines of a maker have, in the
// maker's way: an iDRAC leaves MapTerms out, an XCC writes them before the next
// condition.
func Rules(vendor string) []Rule {
	switch vendor {
	case IDRAC:
		return []Rule{
			{To: "ProcCStates", Property: "CurrentValue", Value: "Enabled", From: []Term{{"SysProfile", "EQU", "PerfPerWattOptimizedDapc", ""}, {"SysProfile", "EQU", "DenseCfgOptimized", ""}}},
			{To: "ProcCStates", Property: "CurrentValue", Value: "Disabled", From: []Term{{"SysProfile", "EQU", "PerfOptimized", ""}}},
			{To: "ProcCStates", Property: "ReadOnly", Value: true, From: []Term{{"SysProfile", "NEQ", "Custom", ""}}},
		}
	case XCC:
		return []Rule{
			{To: "Memory_MemorySpeed", Property: "GrayOut", Value: true, From: []Term{{"OperatingModes_ChooseOperatingMode", "NEQ", "CustomMode", ""}}},
			{To: "DevicesandIOPorts_SPRedirection", Property: "Hidden", Value: true, From: []Term{{"DevicesandIOPorts_ConsoleRedirection", "EQU", "Disabled", "OR"}, {"DevicesandIOPorts_COMPort2", "EQU", "Disabled", ""}}},
		}
	}
	return nil
}

// holds tells whether a rule applies to the given values.
func (r Rule) holds(values map[string]any) bool {
	met := 0
	for _, t := range r.From {
		if (text(values[t.Attribute]) == t.Value) == (t.Condition == "EQU") {
			met++
		}
	}
	return met > 0 // all rules with more than one condition are alternatives
}

// settable tells whether the rules let an attribute be set while values are so.
func (b *BMC) settable(name string, values map[string]any) bool {
	return !slices.ContainsFunc(Rules(b.machine.Vendor), func(r Rule) bool {
		return r.To == name && r.Property == "ReadOnly" && r.Value == true && r.holds(values)
	})
}

// Attributes are the BIOS attributes that the simulated machines of a maker have.
func Attributes(vendor string) []Attribute {
	switch vendor {
	case IDRAC:
		return []Attribute{
			{Name: "BootMode", Value: "Uefi", Values: []string{"Bios", "Uefi"}, Display: []string{"BIOS", "UEFI"}},
			{Name: "LogicalProc", Value: "Enabled", Values: []string{"Enabled", "Disabled"}},
			{Name: "ProcVirtualization", Value: "Enabled", Values: []string{"Enabled", "Disabled"}},
			{Name: "SriovGlobalEnable", Value: "Disabled", Values: []string{"Enabled", "Disabled"}},
			{Name: "NumaNodesPerSocket", Value: "1", Values: []string{"0", "1", "2", "4"}},
			{Name: "AcPwrRcvryUserDelay", Value: 120, Low: 60, Up: 600},
			{Name: "SystemServiceTag", Value: "SVCTAG1", ReadOnly: true},
			{Name: "SysProfile", Value: "PerfPerWattOptimizedDapc", Values: []string{"PerfPerWattOptimizedDapc", "DenseCfgOptimized", "PerfOptimized", "Custom"}, Display: []string{"Performance Per Watt (DAPC)", "Dense Configuration", "Performance", "Custom"}},
			{Name: "ProcCStates", Value: "Enabled", Values: []string{"Disabled", "Enabled"}},
		}
	case XCC:
		return []Attribute{
			{Name: "BootModes_SystemBootMode", Value: "UEFIMode", Values: []string{"UEFIMode", "LegacyMode"}},
			{Name: "Processors_HyperThreading", Value: "Disable", Values: []string{"Enable", "Disable"}},
			{Name: "DevicesandIOPorts_SRIOV", Value: "Disable", Values: []string{"Enable", "Disable"}},
			{Name: "NetworkStackSettings_PXEbootwaittime", Value: 0, Low: 0, Up: 5},
			{Name: "Power_WorkloadConfiguration", Value: "Balanced", Values: []string{"Balanced", "MaximumPerformance"}},
			{Name: "OperatingModes_ChooseOperatingMode", Value: "MaximumEfficiency", Values: []string{"MaximumEfficiency", "MaximumPerformance", "CustomMode"}},
			{Name: "Memory_MemorySpeed", Value: "MaximumPerformance", Values: []string{"MaximumPerformance", "Balanced", "MinimalPower"}},
			{Name: "DevicesandIOPorts_ConsoleRedirection", Value: "Enabled", Values: []string{"Enabled", "Disabled", "Auto"}},
			{Name: "DevicesandIOPorts_COMPort2", Value: "Disabled", Values: []string{"Enabled", "Disabled"}},
			{Name: "DevicesandIOPorts_SPRedirection", Value: "Disabled", Values: []string{"Enabled", "Disabled"}},
		}
	case AMI:
		return []Attribute{ // the names say nothing
			{Name: "NWSK000", Value: "NWSK000Enabled", Values: []string{"NWSK000Enabled", "NWSK000Disabled"}},
			{Name: "PCIS007", Value: "PCIS007Disabled", Values: []string{"PCIS007Enabled", "PCIS007Disabled"}, Display: []string{"Enabled", "Disabled"}},
			{Name: "SETP005", Value: 1, Low: 0, Up: 600},
		}
	case Supermicro:
		return []Attribute{
			{Name: "QuietBoot_002E", Value: true},
			{Name: "SRIOVSupport_00A1", Value: "Disabled", Values: []string{"Enabled", "Disabled"}},
			{Name: "BootRetries_0031", Value: 0, Low: 0, Up: 5},
		}
	}
	return []Attribute{
		{Name: "SriovSupport", Value: "Disabled", Values: []string{"Enabled", "Disabled"}},
		{Name: "MaxNodes", Value: 4, Low: 1, Up: 8},
	}
}

func (b *BMC) startBIOS() {
	b.bios, b.pendingBIOS = map[string]any{}, map[string]any{}
	for _, a := range Attributes(b.machine.Vendor) {
		b.bios[a.Name] = a.Value
	}
	if b.machine.Vendor == IDRAC {
		for i := range b.machine.NICs {
			b.bios["PxeDev"+number(i+1)+"EnDis"], b.bios["PxeDev"+number(i+1)+"Interface"] = "Enabled", fqdd(i)
		}
	}
	maps.Copy(b.bios, b.machine.BIOS)
}

// registryName is how the BIOS calls its registry.
func (b *BMC) registryName() string {
	if b.machine.Profile.RegistryVersion != "" {
		return "BiosAttributeRegistry." + b.machine.Profile.RegistryVersion
	}
	return "BiosAttributeRegistry"
}

const registryPath = rootPath + "/Registries/BiosAttributeRegistry"

// biosResource are the BIOS, its settings object and its registry.
func (b *BMC) biosResource(path string) object {
	if b.machine.Profile.NoBIOS {
		return nil
	}
	at := b.biosPath()
	switch path {
	case at:
		d := object{"@odata.id": path, "@odata.type": "#Bios.v1_2_1.Bios", "Id": "Bios", "Name": "BIOS Configuration Current Settings", "AttributeRegistry": b.registryName(), "Attributes": maps.Clone(b.bios)}
		if b.machine.Vendor == IDRAC && b.machine.Profile.BIOSEcho {
			maps.Copy(d["Attributes"].(map[string]any), b.pendingBIOS)
		}
		if b.maker.biosSettings != "" && !b.machine.Profile.NoBIOSLink {
			d["@Redfish.Settings"] = object{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": link(at + "/" + b.maker.biosSettings), "SupportedApplyTimes": []any{"OnReset"}}
		}
		return d
	case at + "/" + b.maker.biosSettings:
		d := object{"@odata.id": path, "@odata.type": "#Bios.v1_2_1.Bios", "Id": b.maker.biosSettings, "Name": "BIOS Configuration Pending Settings", "Attributes": maps.Clone(b.pendingBIOS)}
		switch {
		case b.machine.Vendor == Supermicro && len(b.pendingBIOS) == 0:
			delete(d, "Attributes")
		case b.machine.Vendor != IDRAC && b.machine.Vendor != Supermicro: // a full copy
			all := maps.Clone(b.bios)
			maps.Copy(all, b.pendingBIOS)
			d["Attributes"] = all
		}
		return d
	case rootPath + "/Registries":
		return collection(path, "MessageRegistryFile", rootPath+"/Registries/Base", registryPath)
	case registryPath:
		return object{"@odata.id": path, "@odata.type": "#MessageRegistryFile.v1_1_3.MessageRegistryFile", "Id": "BiosAttributeRegistry", "Name": "BIOS Attribute Registry", "Registry": "BiosAttributeRegistry",
			"Location": []any{object{"Language": "en", "Uri": registryPath + "/BiosAttributeRegistry.json"}}}
	case registryPath + "/BiosAttributeRegistry.json":
		return b.registry(path)
	}
	return nil
}

func (b *BMC) registry(path string) object {
	var rows []any
	for _, a := range Attributes(b.machine.Vendor) {
		row := object{"AttributeName": a.Name, "DisplayName": a.Name, "ReadOnly": a.ReadOnly, "Type": "String"}
		if b.machine.Vendor == IDRAC && !b.settable(a.Name, b.bios) {
			row["ReadOnly"] = true // as it is at the moment; the rows of an XCC tell nothing of its rules
		}
		switch {
		case len(a.Values) > 0:
			row["Type"] = "Enumeration"
			var values []any
			for i, v := range a.Values {
				shown := v
				if len(a.Display) > i {
					shown = a.Display[i]
				}
				values = append(values, object{"ValueName": v, "ValueDisplayName": shown})
			}
			row["Value"] = values
		case a.Value == true || a.Value == false:
			row["Type"] = "Boolean"
		case a.Up > a.Low:
			row["Type"], row["LowerBound"], row["UpperBound"] = "Integer", a.Low, json.Number("18446744073709551615")
			if a.Up < 1<<30 {
				row["UpperBound"] = a.Up
			}
		}
		rows = append(rows, row)
	}
	entries := object{"Attributes": rows}
	if rules := Rules(b.machine.Vendor); rules != nil {
		var list []any
		for _, r := range rules {
			var from []any
			for _, t := range r.From {
				c := object{"MapFromAttribute": t.Attribute, "MapFromProperty": "CurrentValue", "MapFromCondition": t.Condition, "MapFromValue": t.Value}
				if t.Terms != "" {
					c["MapTerms"] = t.Terms
				}
				from = append(from, c)
			}
			list = append(list, object{"DependencyFor": r.To, "Type": "Map", "Dependency": object{"MapFrom": from, "MapToAttribute": r.To, "MapToProperty": r.Property, "MapToValue": r.Value}})
		}
		entries["Dependencies"] = list
	}
	return object{"@odata.id": path, "@odata.type": "#AttributeRegistry.v1_3_6.AttributeRegistry", "Id": "BiosAttributeRegistry", "RegistryEntries": entries}
}

// setAttributes checks BIOS attributes as a firmware does: one that is wrong
// refuses the whole.
func (b *BMC) setAttributes(v any) (func(), string) {
	body, ok := v.(object)
	if !ok {
		return nil, "PropertyValueTypeError"
	}
	rows := Attributes(b.machine.Vendor)
	after := maps.Clone(b.bios)
	if !b.machine.Profile.RulesLive {
		maps.Copy(after, b.pendingBIOS)
		maps.Copy(after, body)
	}
	for _, name := range sorted(body) {
		i := slices.IndexFunc(rows, func(a Attribute) bool { return a.Name == name })
		if _, known := b.bios[name]; !known {
			return nil, "PropertyUnknown"
		}
		if i < 0 {
			continue
		}
		switch row := rows[i]; {
		case row.ReadOnly || !b.settable(name, after):
			return nil, "PropertyNotWritable"
		case len(row.Values) > 0 && !slices.Contains(row.Values, text(body[name])):
			return nil, "PropertyValueNotInList"
		case row.Value == true || row.Value == false:
			if _, isBool := body[name].(bool); !isBool {
				return nil, "PropertyValueTypeError"
			}
		case row.Up > row.Low:
			n, isNumber := body[name].(float64)
			if !isNumber {
				return nil, "PropertyValueTypeError"
			}
			if n < float64(row.Low) || n > float64(row.Up) {
				return nil, "PropertyValueNotInList"
			}
		}
	}
	return func() {
		for name, value := range body {
			if n, ok := value.(float64); ok {
				value = int(n)
			}
			b.pendingBIOS[name] = value
		}
	}, ""
}

func text(v any) string { s, _ := v.(string); return s }

// applyBIOS makes pending values live, but for those that the machine ignores, with
// what the rules bring along.
func (b *BMC) applyBIOS() {
	before := maps.Clone(b.bios)
	defer func() {
		for _, r := range Rules(b.machine.Vendor) {
			if r.Property == "CurrentValue" && r.holds(b.bios) && !r.holds(before) {
				b.bios[r.To] = r.Value
			}
		}
	}()
	for name, value := range b.pendingBIOS {
		if !slices.Contains(b.machine.Profile.BIOSIgnored, name) {
			b.bios[name] = value
		}
	}
	b.pendingBIOS = map[string]any{}
}

// BIOS is a live attribute.
func (b *BMC) BIOS(name string) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	return b.bios[name]
}

// SetBIOS sets a live attribute, as a person would in the setup.
func (b *BMC) SetBIOS(name string, value any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bios[name] = value
}

// StageBIOS leaves a pending value, as somebody else would.
func (b *BMC) StageBIOS(name string, value any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pendingBIOS[name] = value
}

// PendingBIOS is how many values wait for a boot.
func (b *BMC) PendingBIOS() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	return len(b.pendingBIOS)
}

// noContent answers a change as most do.
func noContent(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }

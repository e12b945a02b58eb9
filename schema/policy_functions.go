package schema

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/enroll-dev/enroll/plan"
)

// policyFunctionTable are the functions that policies have beside the others.
// They look at the steps of what the policy is asked about.
func policyFunctionTable() []languageFunction {
	fn := policyFunctions(plan.PolicyCase{}, true)
	return []languageFunction{
		{groupPolicy, "changes", "changes(pattern)", "Whether a step writes to an address that fits the pattern.", `changes("*/bmc.ntp")`, fn["changes"]},
		{groupPolicy, "count_effect", "count_effect(effect)", "How many devices have a step with the effect. Steps that devices share count each for itself.", `count_effect("reboot") > 5`, fn["count_effect"]},
		{groupPolicy, "has_effect", "has_effect(effect)", "Whether a step has the effect: `erase`, `reboot`, `power`, `bmc_reset`, `credential`, `service_restart` or `irreversible`.", `has_effect("reboot")`, fn["has_effect"]},
		{groupPolicy, "within", "within(from, to, zone)", "Whether the time of day is at or after `from` and before `to` in a time zone. A span whose end comes first goes over midnight.", `within("08:00", "18:00", "Europe/London")`, fn["within"]},
	}
}

// policyFunctions binds the functions to a case. While checking they judge their
// arguments and say nothing else.
func policyFunctions(c plan.PolicyCase, checking bool) map[string]function.Function {
	text := func(name string) function.Parameter { return function.Parameter{Name: name, Type: cty.String} }
	one := func(param string, t cty.Type, check func(string) error, ask func(string) (cty.Value, error)) function.Function {
		return function.New(&function.Spec{
			Params: []function.Parameter{text(param)}, Type: function.StaticReturnType(t),
			Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
				arg := args[0].AsString()
				if err := check(arg); err != nil {
					return cty.NilVal, function.NewArgError(0, err)
				}
				if checking {
					return cty.UnknownVal(t), nil
				}
				return ask(arg)
			},
		})
	}
	return map[string]function.Function{
		"has_effect": one("effect", cty.Bool, plan.CheckEffect, func(arg string) (cty.Value, error) {
			has, err := c.HasEffect(arg)
			return cty.BoolVal(has), err
		}),
		"count_effect": one("effect", cty.Number, plan.CheckEffect, func(arg string) (cty.Value, error) {
			n, err := c.CountEffect(arg)
			return cty.NumberIntVal(int64(n)), err
		}),
		"changes": one("pattern", cty.Bool, plan.CheckPattern, func(arg string) (cty.Value, error) {
			changes, err := c.Changes(arg)
			return cty.BoolVal(changes), err
		}),
		"within": function.New(&function.Spec{
			Params: []function.Parameter{text("from"), text("to"), text("zone")}, Type: function.StaticReturnType(cty.Bool),
			Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
				from, to, zone := args[0].AsString(), args[1].AsString(), args[2].AsString()
				if _, _, _, err := plan.CheckWithin(from, to, zone); err != nil {
					return cty.NilVal, err
				}
				if checking {
					return cty.UnknownVal(t), nil
				}
				in, err := c.Within(from, to, zone)
				return cty.BoolVal(in), err
			},
		}),
	}
}

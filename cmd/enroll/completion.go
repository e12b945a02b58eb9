package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/schema"
)

// completeFolders leaves it to the shell.
func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeTopics offers everything that explain knows.
func completeTopics(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	seen := map[string]bool{}
	var out []string
	for _, t := range schema.Topics() {
		if !seen[t.Name] && !t.Later {
			seen[t.Name] = true
			out = append(out, t.Name+"\t"+t.Kind)
			// The whole path begins with the site block.
			if strings.HasPrefix(typed, "site.") && (t.Kind == "attribute" || t.Kind == "block") {
				out = append(out, "site."+t.Name+"\t"+t.Kind)
			}
		}
	}
	for code := range plan.Codes() {
		out = append(out, string(code)+"\tfault code")
	}
	sort.Strings(out)
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeExplained offers names, and behind the slash of a device the kinds of
// addresses.
func (a *app) completeExplained(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	at := strings.LastIndexByte(typed, '/')
	if at < 0 || len(args) > 0 {
		return completeTopics(cmd, args, typed)
	}
	var out []string
	for _, kind := range plan.KindNames() {
		out = append(out, typed[:at+1]+kind)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeSites offers the folders that hold a site: those below the current one
// and below its folder sites. Others are left to the shell.
func completeSites(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, pattern := range []string{"*.hcl*", "*/*.hcl*", "sites/*/*.hcl*"} {
		files, _ := filepath.Glob(pattern) // the patterns are good
		for _, f := range files {
			if dir := filepath.Dir(f); strings.HasPrefix(dir, typed) && (len(out) == 0 || out[len(out)-1] != dir) {
				out = append(out, dir)
			}
		}
	}
	if len(out) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// maxRemembered bounds what is kept of a plan of a whole site.
const maxRemembered = 5000

// lastPlan is what completion knows of the last plan: no more than names.
type lastPlan struct {
	Site    string   `json:"site"`
	Devices []string `json:"devices"`
}

// remember keeps the names of a plan's devices for completion, by the site's
// folder. It changes no outcome, so it does not complain.
func (a *app) remember(p *plan.Plan) {
	last := lastPlan{Site: p.Scope.Site, Devices: p.Scope.Devices}
	if len(last.Devices) > maxRemembered {
		last.Devices = last.Devices[:maxRemembered]
	}
	path := a.lastPlanFile(p.SiteDir)
	raw, err := json.Marshal(last)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = writeFile(path, raw) // see above
}

// lastPlanFile is where remember writes: in the user's state folder.
func (a *app) lastPlanFile(siteDir string) string {
	whole, err := filepath.Abs(siteDir)
	if err != nil {
		whole = siteDir
	}
	return filepath.Join(filepath.Dir(a.stateDir()), "last-plan", strings.ReplaceAll(strings.Trim(filepath.ToSlash(whole), "/"), "/", "%")+".json")
}

// completeDevices offers the devices of the last plan of the site. It asks no
// system: a key that is pressed must not wait for one.
func (a *app) completeDevices(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	raw, err := os.ReadFile(a.lastPlanFile(a.siteDir))
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var last lastPlan
	if json.Unmarshal(raw, &last) != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	named := map[string]bool{}
	for _, n := range args {
		named[n] = true
	}
	var out []string
	for _, n := range last.Devices {
		if !named[n] && strings.HasPrefix(n, typed) {
			out = append(out, n+"\t"+last.Site)
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}

// completeSelection offers the words that a selection can be made of, and leaves
// addresses to the person.
func completeSelection(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, kind := range plan.KindNames() {
		out = append(out, "kind:"+kind)
	}
	for _, action := range plan.Actions() {
		out = append(out, "action:"+string(action))
	}
	for _, effect := range plan.Effects() {
		out = append(out, "effect:"+string(effect))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeApprove offers the classes of effects, and the policies of the site.
func (a *app) completeApprove(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	out := classNames()
	file, diags := a.load(a.siteDir)
	if diags.HasErrors() {
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	for _, p := range file.Site().Policies {
		if p.Action == plan.PolicyApproval {
			out = append(out, p.Name+"\t"+p.Message)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

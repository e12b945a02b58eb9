package netbox

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

const (
	kindTag   = "netbox.tag"
	tagIronic = "ironic"
	tagBMC    = "ipmi_exporter"
)

// tagsOf are the slugs of the tags that devices of a site are given. They have to
// exist: enroll adds tags to devices and creates none.
func tagsOf(site *plan.Site) []string {
	if site.BMC != nil && site.ConfigureBMC {
		return []string{tagBMC, tagIronic}
	}
	return []string{tagIronic}
}

// bmcTagKind marks a device whose BMC is configured (reference workflow, phase 2): the
// monitoring of BMCs goes by it, whatever there was to configure.
func bmcTagKind() plan.Kind {
	return plan.Kind{
		Name:   kindTag,
		Key:    tagBMC,
		Phase:  plan.PhaseActivate,
		Doc:    "NetBox tag that marks the device's BMC as configured; it is added, never removed.",
		Decide: decideBMCTag,
		Want: func(t *plan.Target) []plan.Resource {
			if !slices.Contains(tagsOf(t.Site), tagBMC) {
				return nil
			}
			return []plan.Resource{{Address: t.Address("netbox", "tag", tagBMC), Want: tagValue(true), From: []string{t.Intent.URL}}}
		},
	}
}

// decideBMCTag plans no tag where the BMC is not configured to the end: on a node that
// somebody holds, and where a step of the BMC is blocked.
func decideBMCTag(d plan.Decision) plan.Verdict {
	blocked := slices.ContainsFunc(d.Steps, func(s *plan.Step) bool { return s.Address.System == "bmc" && s.Blocked != nil })
	if (d.Owner.Owned || blocked) && d.Live.Presence == plan.Present {
		return plan.Nothing()
	}
	return plan.Compare(d)
}

// tagKind marks a device as enrolled. The tag is added to the others and never
// taken away. It is the one thing that is also written for an owned node
// (reference workflow: satisfied nodes are re-tagged).
func tagKind() plan.Kind {
	return plan.Kind{
		Name:    kindTag,
		Key:     tagIronic,
		Phase:   plan.PhaseFinish,
		OnOwned: true,
		Doc:     "NetBox tag that marks the device as enrolled; it is added, never removed.",
		Decide:  decideTag,
		Want: func(t *plan.Target) []plan.Resource {
			return []plan.Resource{{
				Address: t.Address("netbox", "tag", tagIronic),
				Want:    tagValue(true),
				From:    []string{t.Intent.URL},
			}}
		},
	}
}

// The last step of the walk to available, in Ironic's words.
const provideStep = "ironic.provision[provide]"

// decideTag plans the tag for a device that is enrolled: its node is available
// or counts as satisfied, or this plan makes it so. A device that stays on the
// way gets none, and one that is tagged already keeps its tag.
func decideTag(d plan.Decision) plan.Verdict {
	enrolled := d.Owner.Satisfied || d.Owner.State == plan.StateAvailable || d.Planned(provideStep) != nil
	if !enrolled && d.Live.Presence == plan.Present {
		return plan.Nothing()
	}
	return plan.Compare(d)
}

func tagValue(present bool) plan.Value {
	return plan.Obj(map[string]plan.Value{"present": plan.Bool(present)})
}

func liveTag(r plan.Resource, d liveDevice) plan.Live {
	return plan.LiveValue(tagValue(d.hasTag(r.Address.Key)))
}

func runTag(ctx context.Context, c *Client, s *subject) plan.Result {
	slug := s.step.Address.Key
	return c.write(ctx, s, edit{
		decide: func(d liveDevice) (change, bool, *plan.Fault) {
			if d.hasTag(slug) {
				return change{}, true, nil
			}
			ch := change{addTag: slug, message: c.note("tag " + slug + " added")}
			if c.seen().before(locking) {
				// add_tags would be ignored with 200: the whole list is sent, by id,
				// because a tag by slug also needs the right to see tags.
				id, fault := c.tagID(ctx, slug)
				if fault != nil {
					return change{}, false, fault
				}
				ch.addTag, ch.allTags = "", []int64{}
				for _, t := range d.Tags {
					ch.allTags = append(ch.allTags, t.ID)
				}
				ch.allTags = append(ch.allTags, id)
			}
			return ch, false, nil
		},
		refused: func(a *answer) *plan.Fault {
			// NetBox answers an unknown tag in add_tags with a server error.
			if a.status != http.StatusInternalServerError && a.status != http.StatusBadRequest {
				return nil
			}
			return c.about(a, plan.CodeNetBoxRefused, "NetBox did not add the tag %s to %s%s", slug, s.name, tail(c.words(a))).
				WithHint("Create a tag with the slug %s in NetBox (%s/extras/tags/) if there is none; enroll does not create tags.", slug, c.base)
		},
		kept: func(before, after liveDevice) string {
			for _, t := range before.Tags {
				if !after.hasTag(t.Slug) {
					return t.Slug
				}
			}
			return ""
		},
		stuck: func(d liveDevice) (string, string) {
			var tags []string
			for _, t := range d.Tags {
				tags = append(tags, t.Slug)
			}
			return "tag " + slug, "tags " + clean(strings.Join(tags, ", "), 200)
		},
	})
}

func (c *Client) tagID(ctx context.Context, slug string) (int64, *plan.Fault) {
	ans, fail := c.once(ctx, call{fields: slugFields}, func(ctx context.Context) error { return c.api.tagsBySlug(ctx, []string{slug}, 0) })
	if fail != nil {
		return 0, fail.fault
	}
	got, err := decodePage[fielded](c, ans)
	if err != nil {
		return 0, plan.AsFault(err)
	}
	for _, t := range *got.Results {
		if t.Slug == slug {
			return t.ID, nil
		}
	}
	return 0, c.noTag(slug)
}

func (c *Client) noTag(slug string) *plan.Fault {
	return plan.NewFault(plan.CodeNetBoxRefused, "NetBox shows no tag with the slug %s", slug).With("url", c.base+"/extras/tags/").
		WithHint("Create a tag with the slug %s in NetBox; the token needs the permission extras.view_tag.", slug)
}

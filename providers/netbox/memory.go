package netbox

import (
	"context"
	"sync"
)

// memory is what a client has read and need not read again in the same run.
type memory struct {
	mu     sync.Mutex
	sites  map[string]fielded             // by slug
	listed map[string]map[string][]device // by slug and name; taken once
	live   map[int64]liveDevice           // of the last Intents
}

func (c *Client) knownSite(slug string) (fielded, bool) {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	s, known := c.memory.sites[slug]
	return s, known
}

func (c *Client) rememberSite(s fielded) {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	if c.memory.sites == nil {
		c.memory.sites = map[string]fielded{}
	}
	c.memory.sites[s.Slug] = s
}

// giveListed keeps the devices that Names has read for the Intents that follow.
func (c *Client) giveListed(slug string, rows map[string][]device) {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.listed = map[string]map[string][]device{slug: rows}
}

func (c *Client) takeListed(slug string) map[string][]device {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	rows := c.memory.listed[slug]
	c.memory.listed = nil
	return rows
}

// keep remembers what Intents has seen of the devices' own fields.
func (c *Client) keep(w *world) {
	live := map[int64]liveDevice{}
	for _, rows := range w.devices {
		for _, d := range rows {
			live[d.ID] = liveDevice{ID: d.ID, Name: d.Name, Status: d.Status, Tags: d.Tags, CustomFields: d.CustomFields, LastUpdated: d.LastUpdated}
		}
	}
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.live = live
}

type sameReadingKey struct{}

// SameReading says that a Read belongs to the same moment as the Intents before
// it, as in planning: it may answer from what Intents has read. Without it, as
// for the guards of an apply, Read always asks NetBox.
func SameReading(ctx context.Context) context.Context {
	return context.WithValue(ctx, sameReadingKey{}, true)
}

// remembered gives the devices of these ids when the context allows and all of
// them are known.
func (c *Client) remembered(ctx context.Context, ids map[string]int64) map[int64]liveDevice {
	if same, _ := ctx.Value(sameReadingKey{}).(bool); !same {
		return nil
	}
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	out := map[int64]liveDevice{}
	for _, id := range ids {
		d, known := c.memory.live[id]
		if !known || d.check() != nil {
			return nil
		}
		out[id] = d
	}
	return out
}

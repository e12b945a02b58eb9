package plan

import (
	"encoding/json"
	"strings"
)

// Hash covers what the site's files came to, variables included, wherever the
// files lie. Where an attribute was set does not count.
func (s *Site) Hash() string {
	c := *s
	c.Dir, c.Files, c.Set, c.Includes = "", nil, nil, nil
	raw, err := json.Marshal(&c)
	if err != nil {
		return "" // unreachable: a site is plain data
	}
	text := string(raw)
	for _, f := range s.Includes {
		text = strings.ReplaceAll(text, `"`+inJSON(f.Dir)+`/`, `"`+inJSON(f.Rel)+`/`)
	}
	if s.Dir != "" {
		text = strings.ReplaceAll(text, inJSON(s.Dir)+"/", "")
	}
	return hashOf([]byte(text))
}

// Relative names a place in the site's files from the site's folder on, that in an
// included file by the path of the include.
func (s *Site) Relative(place string) string {
	for _, f := range s.Includes {
		if rest, ok := strings.CutPrefix(place, strings.TrimSuffix(f.Dir, "/")+"/"); ok {
			return f.Rel + "/" + rest
		}
	}
	if s.Dir == "" {
		return place
	}
	return strings.TrimPrefix(place, strings.TrimSuffix(s.Dir, "/")+"/")
}

// inJSON is a text as it stands inside a JSON text.
func inJSON(s string) string {
	quoted, _ := json.Marshal(strings.TrimSuffix(s, "/")) // a text always encodes
	return string(quoted[1 : len(quoted)-1])
}

// Hash covers what the site's files say about one device.
func (s Settings) Hash() string {
	s.Set = nil
	raw, err := json.Marshal(s)
	if err != nil {
		return "" // unreachable: settings are plain data
	}
	return hashOf(raw)
}

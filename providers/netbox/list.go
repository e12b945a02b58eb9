package netbox

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/enroll-dev/enroll/plan"
)

// inFlight is how many requests run at once: more than NetBox has workers buys
// nothing (two by default).
const inFlight = 2

// urlLimit keeps request lines below the 4094 bytes that gunicorn takes by
// default; a longer one is answered with a web page and 400.
const urlLimit = 4000

// record is what a pointer to a row of a list can do.
type record[T any] interface {
	*T
	ident() int64
	// check names the first thing that the row lacks.
	check() error
}

type page[T any] struct {
	Count   *int `json:"count"`
	Results *[]T `json:"results"`
}

// listAll reads all pages of a list. NetBox's pages are by offset, so a change
// between two of them can repeat or skip rows: then the list is read once more.
func listAll[T any, P record[T]](ctx context.Context, c *Client, fields []string, send func(ctx context.Context, offset int32) error) ([]T, error) {
	rows, moved, err := listOnce[T, P](ctx, c, fields, send)
	if err != nil || moved == "" {
		return rows, err
	}
	rows, moved, err = listOnce[T, P](ctx, c, fields, send)
	if err == nil && moved != "" {
		return nil, plan.NewFault(plan.CodeNetBoxProtocol, "a list of NetBox changed twice while it was read: %s", moved).
			WithHint("Plan again when nobody is writing many objects to NetBox.")
	}
	return rows, err
}

// listOnce gives the rows, or says how the list contradicted itself.
func listOnce[T any, P record[T]](ctx context.Context, c *Client, fields []string, send func(ctx context.Context, offset int32) error) (rows []T, moved string, err error) {
	seen := map[int64]bool{}
	for first, total := true, 0; first || len(rows) < total; {
		offset := int32(len(rows)) //nolint:gosec // far below 2^31: every row was held in memory
		ans, err := c.read(ctx, call{fields: fields}, func(ctx context.Context) error { return send(ctx, offset) })
		if err != nil {
			return nil, "", err
		}
		got, err := decodePage[T, P](c, ans)
		if err != nil {
			return nil, "", err
		}
		if !first && *got.Count != total {
			return nil, "the number of objects went from " + itoa(int64(total)) + " to " + itoa(int64(*got.Count)), nil
		}
		first, total = false, *got.Count
		if len(*got.Results) == 0 && len(rows) < total {
			return nil, "a page is empty before the end", nil
		}
		for _, row := range *got.Results {
			id := P(&row).ident()
			if seen[id] {
				return nil, "object " + itoa(id) + " came twice", nil
			}
			seen[id] = true
			rows = append(rows, row)
		}
		if len(rows) > total {
			return nil, "there are more objects than counted", nil
		}
	}
	return rows, "", nil
}

func decodePage[T any, P record[T]](c *Client, ans *answer) (page[T], error) {
	var got page[T]
	if err := json.Unmarshal(ans.body, &got); err != nil {
		return got, c.about(ans, plan.CodeNetBoxProtocol, "a list of NetBox cannot be read").Because(err)
	}
	if got.Count == nil || got.Results == nil || *got.Count < 0 {
		return got, c.about(ans, plan.CodeNetBoxProtocol, "NetBox's answer to %s is no list: count or results is missing", firstPart(ans.path))
	}
	for i := range *got.Results {
		if err := P(&(*got.Results)[i]).check(); err != nil {
			return got, c.about(ans, plan.CodeNetBoxProtocol, "an object in NetBox's list lacks what was asked for").Because(err)
		}
	}
	return got, nil
}

// byIDs reads the objects with the given ids, in as few requests as the length
// of a URL allows. Ids that NetBox does not have are just missing. No ids: no
// request, because a list without a filter is everything.
func byIDs[T any, P record[T]](ctx context.Context, c *Client, param string, fields []string, ids []int64, send func(ctx context.Context, ids []int32, offset int32) error) ([]T, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	small, err := narrow(ids)
	if err != nil {
		return nil, err
	}
	size := func(id int32) int { return len(param) + 2 + len(itoa(int64(id))) }
	return chunked(ctx, small, urlLimit-c.fixedLength(fields), size, func(ctx context.Context, part []int32) ([]T, error) {
		return listAll[T, P](ctx, c, fields, func(ctx context.Context, offset int32) error { return send(ctx, part, offset) })
	})
}

// byTexts reads the objects with the given values of a filter. The same object
// may have two of them: it comes once.
func byTexts[T any, P record[T]](ctx context.Context, c *Client, param string, fields, texts []string, send func(ctx context.Context, texts []string, offset int32) error) ([]T, error) {
	rows, err := chunked(ctx, texts, urlLimit-c.fixedLength(fields), func(s string) int { return escapedSize(param, s) }, func(ctx context.Context, part []string) ([]T, error) {
		return listAll[T, P](ctx, c, fields, func(ctx context.Context, offset int32) error { return send(ctx, part, offset) })
	})
	seen := map[int64]bool{}
	return slices.DeleteFunc(rows, func(row T) bool {
		id := P(&row).ident()
		again := seen[id]
		seen[id] = true
		return again
	}), err
}

// fixedLength is what a list's URL takes besides the repeated filter.
func (c *Client) fixedLength(fields []string) int {
	n := len(c.base) + len("/api/dcim/device-types/?limit=1000&offset=1000000&ordering=id&fields=") + 80
	for _, f := range fields {
		n += len(f) + 1
	}
	return n
}

// unescapeColons makes MAC and IPv6 addresses shorter in a URL; a colon may
// stand in a query as it is (RFC 3986, section 3.4).
func unescapeColons(query string) string { return strings.ReplaceAll(query, "%3A", ":") }

func escapedSize(param, value string) int {
	return len(param) + 2 + len(unescapeColons(url.QueryEscape(value)))
}

// chunked cuts the items by their bytes in the URL and reads the parts, two at
// once; the result is in the order of the parts.
func chunked[I, T any](ctx context.Context, items []I, room int, size func(I) int, read func(ctx context.Context, part []I) ([]T, error)) ([]T, error) {
	parts := cut(items, room, size)
	out := make([][]T, len(parts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	for i, part := range parts {
		g.Go(func() error {
			rows, err := read(ctx, part)
			out[i] = rows
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(out...), nil
}

func cut[I any](items []I, room int, size func(I) int) [][]I {
	var parts [][]I
	start, used := 0, 0
	for i, item := range items {
		n := size(item)
		if i > start && used+n > room {
			parts = append(parts, items[start:i])
			start, used = i, 0
		}
		used += n
	}
	if start < len(items) {
		parts = append(parts, items[start:])
	}
	return parts
}

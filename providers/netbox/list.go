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

// defaultAtOnce is how many requests run at once: more than NetBox has workers buys
// nothing (two by default).
const defaultAtOnce = 2

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
	Count   *int    `json:"count"`
	Next    *string `json:"next"` // where it leads is not followed: it may be another host
	Results *[]T    `json:"results"`
}

// listAll reads all pages of a list. NetBox's pages are by offset, so a change
// between two of them can repeat or skip rows: then the list is read once more.
func listAll[T any, P record[T]](ctx context.Context, c *Client, fields []string, send func(ctx context.Context, offset int32) error) ([]T, error) {
	rows, _, err := listUpTo[T, P](ctx, c, 0, fields, send)
	return rows, err
}

// listUpTo reads all pages of a list if they are not more than most; 0 is no
// limit. Otherwise it says false after the first page.
func listUpTo[T any, P record[T]](ctx context.Context, c *Client, most int, fields []string, send func(ctx context.Context, offset int32) error) ([]T, bool, error) {
	rows, moved, err := listOnce[T, P](ctx, c, most, fields, send)
	if err == nil && moved != "" && moved != tooLong {
		rows, moved, err = listOnce[T, P](ctx, c, most, fields, send)
	}
	switch {
	case err != nil:
		return nil, false, err
	case moved == tooLong:
		return nil, false, nil
	case moved != "":
		return nil, false, plan.NewFault(plan.CodeNetBoxProtocol, "a list of NetBox changed twice while it was read: %s", moved).
			WithHint("Plan again when nobody is writing many objects to NetBox.")
	}
	return rows, true, nil
}

const tooLong = "more pages than allowed"

// mostPages is how many pages one list may have. Nothing is set aside, and nothing is
// asked, for a count that no NetBox has: with the smallest pages that are in use (50)
// these are half a million objects.
const mostPages = 10_000

// listOnce gives the rows, or says how the list contradicted itself. The first
// page tells how many there are; the others are read side by side. A server may
// give shorter pages than asked for.
func listOnce[T any, P record[T]](ctx context.Context, c *Client, most int, fields []string, send func(ctx context.Context, offset int32) error) (rows []T, moved string, err error) {
	var head *answer // of the first page
	read := func(ctx context.Context, offset int) (page[T], error) {
		ans, err := c.read(ctx, call{fields: fields}, func(ctx context.Context) error { return send(ctx, int32(offset)) }) //nolint:gosec // at most mostPages of a page that was read
		if err != nil {
			return page[T]{}, err
		}
		if offset == 0 {
			head = ans
		}
		return decodePage[T, P](c, ans)
	}
	first, err := read(ctx, 0)
	if err != nil {
		return nil, "", err
	}
	total, step := *first.Count, len(*first.Results)
	switch {
	case step == 0 && total > 0:
		return nil, "a page is empty before the end", nil
	case most > 0 && total > most*step:
		return nil, tooLong, nil
	case total > mostPages*step:
		return nil, "", c.about(head, plan.CodeNetBoxProtocol, "NetBox counts %d objects in a list and gives %d at once: more than %d pages are not read", total, step, mostPages)
	}
	pages := []page[T]{first}
	if step > 0 {
		pages = append(pages, make([]page[T], (total+step-1)/step-1)...)
	}
	g, ctx := errgroup.WithContext(ctx)
	for n := 1; n < len(pages); n++ {
		g.Go(func() (err error) {
			pages[n], err = read(ctx, n*step)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, "", err
	}
	seen := map[int64]bool{}
	for n, p := range pages {
		last := n == len(pages)-1
		switch {
		case *p.Count != total:
			return nil, "the number of objects went from " + itoa(int64(total)) + " to " + itoa(int64(*p.Count)), nil
		case len(*p.Results) != min(step, total-n*step):
			return nil, "page " + itoa(int64(n+1)) + " has " + itoa(int64(len(*p.Results))) + " objects", nil
		case last != (p.Next == nil):
			return nil, "the last of " + itoa(int64(total)) + " objects is not the last", nil
		}
		for _, row := range *p.Results {
			id := P(&row).ident()
			if seen[id] {
				return nil, "object " + itoa(id) + " came twice", nil
			}
			seen[id] = true
			rows = append(rows, row)
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

// cheaper reads rows one by one when that takes few requests; else it tries to
// read what they are all part of, in at most as many.
func cheaper[T any](ctx context.Context, requests int, one func(ctx context.Context) ([]T, error), whole func(ctx context.Context, most int) ([]T, bool, error)) ([]T, error) {
	if requests > fewRequests {
		rows, ok, err := whole(ctx, requests)
		if err != nil || ok {
			return rows, err
		}
	}
	return one(ctx)
}

// byIDs reads the objects with the given ids, in as few requests as the length
// of a URL allows. Ids that NetBox does not have are just missing. No ids: no
// request, because a list without a filter is everything.
func byIDs[T any, P record[T]](ctx context.Context, c *Client, param string, fields []string, ids []int64, send func(ctx context.Context, ids []int32, offset int32) error) ([]T, error) {
	small, err := narrow(distinct(ids))
	if err != nil {
		return nil, err
	}
	parts := cut(small, c.room(fields), func(id int32) int { return idSize(param, int64(id)) })
	return inParts(ctx, parts, func(ctx context.Context, part []int32) ([]T, error) {
		return listAll[T, P](ctx, c, fields, func(ctx context.Context, offset int32) error { return send(ctx, part, offset) })
	})
}

// idRequests is how many requests byIDs takes.
func (c *Client) idRequests(param string, fields []string, ids []int64) int {
	return len(cut(distinct(ids), c.room(fields), func(id int64) int { return idSize(param, id) }))
}

func idSize(param string, id int64) int { return len(param) + 2 + len(itoa(id)) }

func distinct(ids []int64) []int64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// byTexts reads the objects with the given values of a filter. The same object
// may have two of them: it comes once.
func byTexts[T any, P record[T]](ctx context.Context, c *Client, param string, fields, texts []string, send func(ctx context.Context, texts []string, offset int32) error) ([]T, error) {
	rows, err := inParts(ctx, c.cutTexts(param, fields, texts), func(ctx context.Context, part []string) ([]T, error) {
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

// textRequests is how many requests byTexts takes, if no answer has two pages.
func (c *Client) textRequests(param string, fields, texts []string) int {
	return len(c.cutTexts(param, fields, texts))
}

func (c *Client) cutTexts(param string, fields, texts []string) [][]string {
	return cut(texts, c.room(fields), func(s string) int { return len(param) + 2 + len(unescape(url.QueryEscape(s))) })
}

// room is what a list's URL has left for a repeated filter, beside the site and
// one more filter.
func (c *Client) room(fields []string) int {
	n := len(c.base) + len("/api/dcim/device-types/?limit=1000&offset=1000000&ordering=id&fields=") + 180
	for _, f := range fields {
		n += len(f) + 1
	}
	return urlLimit - n
}

// unescape makes MAC addresses, IPv6 addresses and prefixes shorter in a URL; a
// colon and a slash may stand in a query as they are (RFC 3986, section 3.4).
func unescape(query string) string {
	return strings.NewReplacer("%3A", ":", "%2F", "/").Replace(query)
}

// inParts reads the parts side by side; the result is in their order.
func inParts[I, T any](ctx context.Context, parts [][]I, read func(ctx context.Context, part []I) ([]T, error)) ([]T, error) {
	out := make([][]T, len(parts))
	g, ctx := errgroup.WithContext(ctx)
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

// cut makes parts whose sizes stay within the room.
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

// cutPages also keeps the rows that a part has, as far as they are known, within
// one page.
func cutPages(ids []int32, room, fixed int, rows map[int32]int) [][]int32 {
	var parts [][]int32
	start, used, filled := 0, 0, 0
	for i, id := range ids {
		n := fixed + len(itoa(int64(id)))
		if i > start && (used+n > room || filled+rows[id] > pageSize) {
			parts = append(parts, ids[start:i])
			start, used, filled = i, 0, 0
		}
		used += n
		filled += rows[id]
	}
	if start < len(ids) {
		parts = append(parts, ids[start:])
	}
	return parts
}

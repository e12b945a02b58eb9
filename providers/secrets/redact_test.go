package secrets_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/secrets"
)

// redact passes pieces through a redactor that knows some secrets.
func redact(t interface{ Fatal(...any) }, known []string, pieces ...string) string {
	r := secrets.NewRedactor()
	for _, k := range known {
		r.Add(plan.NewSecret(k, ""))
	}
	var out strings.Builder
	w := r.Writer(&out)
	for _, p := range pieces {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRedact(t *testing.T) {
	const pw = `p&ss "wörd/1`
	asJSON, err := json.Marshal(map[string]string{"x": pw})
	if err != nil {
		t.Fatal(err)
	}
	key := "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQDF3k2\n-----END KEY-----\n"
	for _, c := range []struct {
		name, in string
		known    []string
		want     string
	}{
		{"plain", "login with hunter2secret failed", []string{"hunter2secret"}, "login with (secret) failed"},
		{"nothing known", "hunter2secret", nil, "hunter2secret"},
		{"twice in a row", "abcdabcd", []string{"abcd"}, "(secret)(secret)"},
		{"longest wins", "x password-long y", []string{"password", "password-long"}, "x (secret) y"},
		{"overlapping", "1abcdefgh2", []string{"abcd", "cdefgh"}, "1(secret)2"},
		{"three bytes are too short", "the cat sat", []string{"cat"}, "the cat sat"},
		{"four bytes", "a cats b", []string{"cats"}, "a (secret) b"},
		{"JSON", string(asJSON), []string{pw}, `{"x":"(secret)"}`},
		{"quoted", fmt.Sprintf("got %q", pw), []string{pw}, `got "(secret)"`},
		{"query", "?p=" + url.QueryEscape(pw) + "&q=1", []string{pw}, "?p=(secret)&q=1"},
		{"path", "/v1/" + url.PathEscape(pw) + "/x", []string{pw}, "/v1/(secret)/x"},
		{"base64", base64.StdEncoding.EncodeToString([]byte(pw)), []string{pw}, "(secret)"},
		{"base64 without padding", base64.RawURLEncoding.EncodeToString([]byte("hunter2secret!")), []string{"hunter2secret!"}, "(secret)E"},
		{"indented key", "    " + strings.ReplaceAll(key, "\n", "\n    "), []string{key}, "    (secret)\n    "},
		{"a line of a key", "line 2: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC.", []string{key}, "line 2: (secret)."},
		{"lines of a short one, apart", "first line; second line", []string{"first line\nsecond line"}, "(secret); (secret)"},
		{"cut off in the middle of a text", `{"m":"not first li…","n":1}`, []string{"first line\nsecond"}, `{"m":"not (secret)…","n":1}`},
		{"a user of a domain", `DOMAIN\nunter2!`, []string{"nunter2!"}, `DOMAIN\(secret)`},
		{"octal bytes", `w\303\266rd1`, []string{"wörd1"}, "(secret)"},
		{"JSON in an address", "q=%7B%22p%22%3A%22a%5C%22b%5Cnc%C3%B6%22%7D", []string{"a\"b\ncö"}, "q=%7B%22p%22%3A%22(secret)%22%7D"},
		{"an address in an address", "u=%2Fp%253Fx%253Da%252526b%2525c3%2525b6", []string{"a&bö"}, "u=%2Fp%253Fx%253D(secret)"},
		{"HTML in JSON", `{"p":"a\u0026amp;b\u0026#34;\u003cc"}`, []string{`a&b"<c`}, `{"p":"(secret)"}`},
		{"a shell in JSON", `{"argv":"--p 'it'\\''s me'"}`, []string{"it's me"}, `{"argv":"--p '(secret)'"}`},
		{"nothing but what is escaped", `x \"\\\"' y`, []string{`"\"'`}, "x (secret) y"},
		{"words that only look alike", "pass word", []string{"password"}, "pass word"},
		{"single quotes of a shell", `login 'it'\''s me'`, []string{"it's me"}, "login '(secret)'"},
		{"double quotes of a shell", `PW="a\$b\"c"`, []string{`a$b"c`}, `PW="(secret)"`},
		{"backslashes of a shell", `PW=a\$b\"c\ d`, []string{`a$b"c d`}, `PW=(secret)`},
		{"ASCII JSON", `{"p":"w\u00f6rd\ud83d\ude00"}`, []string{"wörd😀"}, `{"p":"(secret)"}`},
		{"JSON in JSON", `{"body":"{\"p\":\"a\\\"b&c\"}"}`, []string{`a"b&c`}, `{"body":"{\"p\":\"(secret)\"}"}`},
		{"before the host", "https://u:a%40b%2F&c@host/", []string{"a@b/&c"}, "https://u:(secret)@host/"},
		{"small hexadecimal digits", "p=a%26b%c3%b6", []string{"a&bö"}, "p=(secret)"},
		{"HTML", "p&amp;q&lt;r", []string{"p&q<r"}, "(secret)"},
		{"what a view shows of a control character", `a\u{1b}b\nc`, []string{"a\x1bb\nc"}, "(secret)"},
		{"line ends turned into blanks", "it said: first  second.", []string{"first\n second"}, "it said: (secret)."},
		{"several blanks turned into one", "it said: first second.", []string{"first\n second"}, "it said: (secret)."},
		{"line ends left out", "it said: first second.", []string{"fir\nst second"}, "it said: (secret)."},
		{"lines of a short one", "  first line\n  second\n", []string{"first line\nsecond"}, "  (secret)\n"},
		{"without its last line end", strings.TrimSpace(key) + "|", []string{key}, "(secret)|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := redact(t, c.known, c.in); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			single := strings.Split(c.in, "")
			if got := redact(t, c.known, single...); got != c.want {
				t.Errorf("written in pieces: %q, want %q", got, c.want)
			}
		})
	}
}

// escapes are what printers do to a text. What a secret is nested in is any of them,
// several times over.
func escapes() map[string]func(string) string {
	inner := func(s string) string { return s[1 : len(s)-1] }
	asJSON := func(escapeHTML bool) func(string) string {
		return func(s string) string {
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(escapeHTML)
			_ = enc.Encode(s) // a text
			return inner(strings.TrimSpace(b.String()))
		}
	}
	return map[string]func(string) string{
		"JSON":              asJSON(true),
		"JSON but for HTML": asJSON(false),
		"quoted":            func(s string) string { return inner(strconv.Quote(s)) },
		"quoted as ASCII":   func(s string) string { return inner(strconv.QuoteToASCII(s)) },
		"query":             url.QueryEscape,
		"path":              url.PathEscape,
		"small digits": func(s string) string {
			return regexp.MustCompile("%..").ReplaceAllStringFunc(strings.ReplaceAll(url.QueryEscape(s), "+", "%20"), strings.ToLower)
		},
		"HTML":          html.EscapeString,
		"single quotes": func(s string) string { return strings.ReplaceAll(s, "'", `'\''`) },
		"double quotes": strings.NewReplacer(`"`, `\"`, `\`, `\\`, "$", `\$`, "`", "\\`").Replace,
		"one line":      func(s string) string { return strings.Join(strings.Fields(s), " ") },
		"indented":      func(s string) string { return strings.ReplaceAll(s, "\n", "\n      ") },
	}
}

// TestRedactNested: nothing is left of a secret, whatever it was escaped in, how
// often and in which order.
func TestRedactNested(t *testing.T) {
	alphabet := []rune(`"'&\<>%+/=?#@: $` + "`\n\t!{}[]|;,abcxyz019äß€漢😀ж")
	ends := rapid.SampledFrom([]rune("äß€漢😀ж"))
	all := escapes()
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SliceOfN(ends, 1, 5).Draw(t, "first")
		secret := string(first) + rapid.StringOfN(rapid.SampledFrom(alphabet), 2, 62, -1).Draw(t, "middle") + string(ends.Draw(t, "last"))
		var how []string
		text := secret
		for range rapid.IntRange(0, 4).Draw(t, "depth") {
			name := rapid.SampledFrom(sorted(all)).Draw(t, "escape")
			text, how = all[name](text), append(how, name)
		}
		if got := redact(t, []string{secret}, "login: «"+text+"» failed"); got != "login: «(secret)» failed" {
			t.Fatalf("%q in %q is %q and leaves %q", secret, how, text, got)
		}
		// The same when its end is cut off, at the end of a text or inside of it.
		cut := strings.ToValidUTF8(text[:rapid.IntRange(len(text)*3/4, len(text)).Draw(t, "cut")], "")
		r := secrets.NewRedactor()
		r.Add(plan.NewSecret(secret, ""))
		for _, behind := range []string{"", `", "status": 500}`} {
			got := r.Text("login: «" + cut + "…" + behind)
			want := "login: «(secret)…" + behind
			// Inside of a text four characters are wanted: less may be the beginning of
			// anything.
			if got != want && (behind == "" && len(cut) > 12 || len(first) > 4 && utf8.RuneCountInString(secret) > 16) {
				t.Fatalf("%q in %q, cut off as %q, leaves %q", secret, how, cut, got)
			}
		}
	})
}

func sorted(m map[string]func(string) string) []string { return slices.Sorted(maps.Keys(m)) }

// TestRedactBasicAuth wants the password to be gone from a header that encodes
// user and password together, wherever it begins.
func TestRedactBasicAuth(t *testing.T) {
	const pw = "correct horse battery"
	for _, user := range []string{"a", "ab", "abc", "abcd"} {
		header := base64.StdEncoding.EncodeToString([]byte(user + ":" + pw + "\n"))
		got := redact(t, []string{pw}, header)
		before, after, found := strings.Cut(got, "(secret)")
		if !found || len(before) > len(user)*2+3 || len(after) > 4 {
			t.Errorf("%q became %q", header, got)
		}
	}
}

// TestRedactAnySplit is the promise: no secret in the output, however the text
// is cut, and nothing else changed.
func TestRedactAnySplit(t *testing.T) {
	alphabet := rapid.SampledFrom([]rune("abc:/+ \n"))
	rapid.Check(t, func(t *rapid.T) {
		known := rapid.SliceOfN(rapid.StringOfN(alphabet, 4, 9, -1), 1, 4).Draw(t, "known")
		parts := rapid.SliceOf(rapid.OneOf(rapid.StringOf(alphabet), rapid.SampledFrom(known))).Draw(t, "parts")
		text := strings.Join(parts, "")
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got := redact(t, known, pieces...)
		for _, k := range known {
			// What stands between two placeholders is text that was there.
			for _, piece := range strings.Split(got, "(secret)") {
				if strings.Contains(piece, k) {
					t.Fatalf("%q holds %q", got, k)
				}
			}
		}
		if whole := redact(t, known, text); whole != got {
			t.Fatalf("in pieces %q, whole %q", got, whole)
		}
	})
}

// TestNothingIsHeldBack wants a prompt to appear at once when it cannot be the
// beginning of a secret.
func TestNothingIsHeldBack(t *testing.T) {
	r := secrets.NewRedactor()
	r.Add(plan.NewSecret("hunter2secret", ""))
	var out strings.Builder
	w := r.Writer(&out)
	fmt.Fprint(w, "Apply? [yes/no]: ")
	if out.String() != "Apply? [yes/no]: " {
		t.Errorf("%q", out.String())
	}
	fmt.Fprint(w, "hunter2")
	if strings.Contains(out.String(), "hun") {
		t.Errorf("%q", out.String())
	}
	if err := w.Flush(); err != nil || !strings.HasSuffix(out.String(), "hunter2") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriteFails(t *testing.T) {
	w := secrets.NewRedactor().Writer(broken{})
	if n, err := w.Write([]byte("x")); n != 0 || err == nil {
		t.Error(n, err)
	}
	if err := w.Flush(); err == nil {
		t.Error("a write failed, and the end does not tell")
	}
}

// TestRedactConcurrently is for the race detector.
func TestRedactConcurrently(t *testing.T) {
	r := secrets.NewRedactor()
	var out strings.Builder
	w := r.Writer(&out)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			secret := fmt.Sprintf("secret-number-%d", i)
			r.Add(plan.NewSecret(secret, ""))
			for range 50 {
				fmt.Fprintf(w, "<%s>\n", secret)
			}
		})
	}
	group.Wait()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "number") || strings.Count(out.String(), "<(secret)>\n") != 400 {
		t.Errorf("%.200q", out.String())
	}
}

func TestTextAndHolds(t *testing.T) {
	r := secrets.NewRedactor()
	r.Add(plan.NewSecret("hunter2 secret", ""))
	for in, want := range map[string]string{"": "", "nothing": "nothing", "x hunter2 secret": "x (secret)", "hunter2+secret": "(secret)", "hunter2": "hunter2", "x hunter2…": "x (secret)…", "hunter2 secret, hu…": "(secret), (secret)…", "h…": "h…", "…": "…"} {
		holds := strings.Contains(in, " secret") || strings.Contains(in, "+secret") || strings.Contains(in, "hunter2…")
		if got := r.Text(in); got != want || r.Holds(in) != holds {
			t.Errorf("%q became %q", in, got)
		}
	}
}

// A short secret inside of a longer one that was cut off must not leave the
// pieces of the longer one.
func TestCutOffAroundAnother(t *testing.T) {
	r := secrets.NewRedactor()
	r.Add(plan.NewSecret("long-before-PIN1-long-after", ""))
	r.Add(plan.NewSecret("PIN1", ""))
	if got, want := r.Text("refused: long-before-PIN1-lo…"), "refused: (secret)…"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := r.Text("refused: long-before-PIN1…"), "refused: (secret)…"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := r.Text("PIN1 and long-before-PIN1-long-after…"), "(secret) and (secret)…"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

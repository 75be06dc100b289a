package apifuzz

import (
	"bytes"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// spoiler does one thing to a valid request. It reports whether it could.
type spoiler struct {
	name string
	do   func(d *drawer, r *request) bool
}

var spoilers = []spoiler{
	{"odd value", oddValue},
	{"odd value", oddValue},
	{"odd value", oddValue},
	{"unknown field", unknownField},
	{"unknown field inside", unknownInside},
	{"duplicate key", duplicateKey},
	{"missing field", missingField},
	{"odd body", oddBody},
	{"truncated body", truncated},
	{"wrong content type", wrongContent},
	{"compressed body", compressed},
	{"huge body", hugeBody},
	{"long list", longList},
	{"odd query", oddQuery},
	{"odd query", oddQuery},
	{"unknown parameter", unknownParameter},
	{"twice a parameter", twice},
	{"odd cursor", oddCursor},
	{"odd path", oddPath},
	{"odd header", oddHeader},
	{"odd header", oddHeader},
	{"other method", otherMethod},
	{"other path", otherPath},
	{"body where none is", strayBody},
	{"pushed events", pushed},
}

// spoil does one thing to a request that makes it invalid, or nearly so.
func (d *drawer) spoil(r *request) {
	for range 20 {
		if s := pick(d.Rand, spoilers); s.do(d, r) {
			r.spoilt = s.name
			return
		}
		r.method, r.wants = r.o.method, nil
	}
}

// deep is far deeper than anything sensible nests.
const deep = 10_000

// odd is a value that most fields do not expect.
func (d *drawer) odd() value {
	return pick(d.Rand, []value{
		nil, true, "", "ok", raw("0"), raw("-1"), raw("1.5"), raw("1e400"), raw("-9223372036854775808"), raw("9223372036854775807"), raw("9223372036854775808"),
		raw("123456789012345678901234567890"), strings.Repeat("x", 300), strings.Repeat("é", 5000), raw(`"` + "\xff\xfe\xc3" + `"`), raw(`"\ud800"`), raw(`"\u0000"`),
		raw("\"a\\\tb\""), "a\nb", "a\x7fb",
		[]value{},
		[]value{nil},
		[]value{"a", raw("1")},
		&object{}, raw(strings.Repeat("[", deep) + strings.Repeat("]", deep)),
		raw(strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep)), "9999-12-31T23:59:59.999Z", "0000-01-01T00:00:00Z", "2026-02-30T00:00:00Z",
		"1970-01-01T00:00:00+23:59", "ffk_", "..", "%00", "'; drop table executions; --", "{fp:0}:", "{fp:99999}:0198f0a0-0000-7000-8000-000000000000", "*",
	})
}

func oddValue(d *drawer, r *request) bool {
	all := slotsOf(r.body)
	if len(all) == 0 {
		return false
	}
	at := pick(d.Rand, all)
	at.put(d.odd())
	r.waits = true
	return true
}

func unknownField(d *drawer, r *request) bool {
	body, ok := r.body.(*object)
	if !ok || !body.closed {
		return false
	}
	body.add(pick(d.Rand, []string{"knd", "unknown", "", "Kind ", "now"}), d.anything(2))
	r.wants = []string{"unknown_field"}
	return true
}

func unknownInside(d *drawer, r *request) bool {
	for _, at := range slotsOf(r.body) {
		if at.in != nil && at.in.closed && d.IntN(3) == 0 {
			at.in.add("unknown", d.odd())
			return true
		}
	}
	return false
}

func duplicateKey(d *drawer, r *request) bool {
	body, ok := r.body.(*object)
	if !ok || len(body.names) == 0 {
		return false
	}
	i := d.IntN(len(body.names))
	body.add(body.names[i], body.values[i])
	r.wants = []string{"invalid_json"}
	return true
}

func missingField(d *drawer, r *request) bool {
	body, ok := r.body.(*object)
	if !ok || len(body.names) == 0 {
		return false
	}
	body.drop(pick(d.Rand, body.names))
	return true
}

// sends puts a text in the place of the body.
func (r *request) sends(text string) bool {
	if len(r.o.contents) == 0 || r.bare {
		return false
	}
	r.body, r.bare, r.text = nil, true, text
	return true
}

func oddBody(d *drawer, r *request) bool {
	r.waits = true
	return r.sends(pick(d.Rand, []string{
		"null", "[]", `""`, "0", "true", "{}{}", "{},", "\xef\xbb\xbf{}", "{\"\xff\":1}", "\x00", "nul", strings.Repeat("[", deep), strings.Repeat(`{"items":[`, deep), `{"a":1,}`, "{'a':1}", " ", "\n\n{}",
	}))
}

func truncated(d *drawer, r *request) bool {
	if _, ok := r.body.(*object); !ok {
		return false
	}
	text := textOf(r.body)
	r.wants = []string{"invalid_json"}
	return r.sends(text[:1+d.IntN(len(text)-1)])
}

func wrongContent(d *drawer, r *request) bool {
	if !r.o.takesJSON() || r.body == nil {
		return false
	}
	r.header.Set("Content-Type", pick(d.Rand, []string{"text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "image/png", "text/html"}))
	r.wants = []string{"unsupported_media_type"}
	return true
}

func compressed(d *drawer, r *request) bool {
	if r.body == nil {
		return false
	}
	r.header.Set("Content-Encoding", pick(d.Rand, []string{"gzip", "br", "zstd"}))
	r.wants = []string{"unsupported_media_type"}
	return true
}

// hugeBody is above every limit but those of lists of work.
func hugeBody(d *drawer, r *request) bool {
	switch r.o.id {
	case wire.StartBulk.ID, wire.HeartbeatWorker.ID, wire.SubmitExecutions.ID, wire.SendWork.ID, wire.PutStep.ID, wire.ApproveExecution.ID, wire.AppendFrames.ID,
		wire.SubmitFlow.ID, wire.ExtendFlow.ID, wire.SpawnChildren.ID:
		return false // up to 96 MiB: see announced
	}
	size := 300 << 10
	r.wants = []string{"payload_too_large"}
	return r.sends(`{"reason":"` + string(bytes.Repeat([]byte{'x'}, size)) + `"}`)
}

// lists are the lists of the operations that take more than a few, and an element of each.
var lists = map[string][2]string{
	wire.StartBulk.ID: {"ids", `""`}, wire.HeartbeatWorker.ID: {"leases", "{}"}, wire.SubmitExecutions.ID: {"items", "{}"}, wire.SendWork.ID: {"items", "{}"},
	wire.SubmitFlow.ID: {"nodes", "{}"}, wire.ExtendFlow.ID: {"nodes", "{}"}, wire.SpawnChildren.ID: {"children", "{}"},
}

// longList has a million elements, far more than any list may have.
func longList(_ *drawer, r *request) bool {
	list, takes := lists[r.o.id]
	if !takes {
		return false
	}
	r.wants = []string{"batch_too_large", "payload_too_large"}
	return r.sends(`{"` + list[0] + `":[` + strings.Repeat(list[1]+",", 1_000_000) + list[1] + `]}`)
}

var oddTexts = []string{
	"", " ", "-1", "0", "1e9", "99999999999999999999", "9223372036854775807", "NaN", "null", "%", "%zz", "%00", "%ff%fe", "%F0%9F%98%80", "a,b,,c", "*", "..", "%2e%2e%2f", "true", "'", "%22", "{}",
	strings.Repeat("x", 300), strings.Repeat("y", 5000), "2026-01-01", "9999-12-31T23%3A59%3A59.999Z", "start", "AAAA", "eyJhIjoxfQ", "0198f0a0-0000-7000-8000-000000000000",
	url.QueryEscape("{fp:0}:0198f0a0-0000-7000-8000-000000000000"), url.QueryEscape("{fp:-1}:x"), "tag.", "0x10", "+1", "1.0",
}

func oddQuery(d *drawer, r *request) bool {
	var all []string
	for _, p := range r.o.parameters {
		if p.in == "query" {
			all = append(all, p.name)
		}
	}
	if len(all) == 0 {
		return false
	}
	name := pick(d.Rand, all)
	if name == "tag" {
		name += pick(d.Rand, []string{"", ".", ".a", "." + strings.Repeat("k", 300)})
	}
	r.query = append(r.query, pair{name, pick(d.Rand, oddTexts)})
	r.waits = true
	return true
}

func unknownParameter(_ *drawer, r *request) bool {
	if strings.HasPrefix(r.o.path, "/v1/schedules") {
		return false
	}
	r.query = append(r.query, pair{"unheard_of", "1"})
	r.wants = []string{"unknown_field"}
	return true
}

func twice(d *drawer, r *request) bool {
	if len(r.query) == 0 {
		return false
	}
	r.query = append(r.query, pick(d.Rand, r.query))
	return true
}

// oddCursor takes a cursor of another list, or one of this with a letter changed.
func oddCursor(d *drawer, r *request) bool {
	if !slices.ContainsFunc(r.o.parameters, func(p parameter) bool { return p.name == "cursor" || p.name == "after" }) {
		return false
	}
	text := []byte(d.mem.some(d.Rand, pick(d.Rand, []string{"next_cursor", "next"})))
	if d.IntN(2) == 0 {
		text[d.IntN(len(text))] = pick(d.Rand, []byte("aZ0_-!"))
	}
	name := "cursor"
	if !slices.ContainsFunc(r.o.parameters, func(p parameter) bool { return p.name == "cursor" }) {
		name = "after"
	}
	r.query = append(slices.DeleteFunc(r.query, func(p pair) bool { return p.name == name }), pair{name, url.QueryEscape(string(text))})
	r.waits = true
	return true
}

func oddPath(d *drawer, r *request) bool {
	for name := range r.path {
		r.path[name] = pick(d.Rand, oddTexts)
		if strings.HasPrefix(r.path[name], "%z") || r.path[name] == "%" || r.path[name] == " " {
			r.path[name] = "%25"
		}
		return true
	}
	return false
}

// oddHeaders are values that a client can send and the server cannot like.
var oddHeaders = map[string][]string{
	"If-Match":             {"", "*", `"x"`, `W/"1"`, "1", `"-1"`, `"99999999999999999999"`, `"1","2"`, "\xff"},
	"If-None-Match":        {"", "*", `W/"`, `"a", "b"`, strings.Repeat(`"a",`, 500)},
	"Prefer":               {"wait=-1", "wait=99999999999999999999", "wait", "wait=1.5", "respond-async", `wait="0"`, ";;;,,,", "wait=0;wait=0"},
	"Idempotency-Key":      {"", " ", "a b", "é", strings.Repeat("k", 129), "\xff"},
	"FlowFabric-Lease":     {"", "..", "a.b.c", "a.-1.c", "a.99999999999999999999.c", strings.Repeat("l", 5000), "\xff.1.a"},
	"FlowFabric-Namespace": {"nowhere", "*", "é", strings.Repeat("n", 300), "a b", "'"},
	"Traceparent":          {"", "00", "00-00000000000000000000000000000000-0000000000000000-00", "zz-1-1-1", strings.Repeat("0", 500)},
	"Tracestate":           {strings.Repeat("a=b,", 200), "==", "\xff"},
	"Baggage":              {strings.Repeat("a=b,", 3000), "=;"},
	"X-Request-Id":         {"", strings.Repeat("r", 129), "é", "a\tb"},
	"Accept":               {"", "text/event-stream;q=0", "nonsense", "*/*", strings.Repeat("a/b,", 1000)},
	"Accept-Encoding":      {"gzip", "gzip;q=0", "br", "*"},
	"Content-Type":         {"", "application/json; charset=latin1", "application/json;;", "json", "/", strings.Repeat("a", 500), "application/x-ndjson"},
	"Last-Event-ID":        {"x", "-1", strings.Repeat("9", 30), "start"},
	"Origin":               {"http://example.com", "null", ":"},
	"X-Forwarded-For":      {"not an address", strings.Repeat("1.2.3.4,", 500)},
	"Range":                {"bytes=0-0", "bytes=-1", "lines=1"},
	"Content-Encoding":     {"identity", "nonsense"},
	"Expect":               {"100-continue"},
	"X-Large":              {strings.Repeat("x", 33<<10)},
	"Host":                 {"example.com", "[::1", ""},
	"Transfer-Encoding":    {"identity"},
}

func oddHeader(d *drawer, r *request) bool {
	name := pick(d.Rand, slices.Sorted(maps.Keys(oddHeaders)))
	r.header.Set(name, pick(d.Rand, oddHeaders[name]))
	r.waits = true
	return true
}

func otherMethod(d *drawer, r *request) bool {
	r.method = pick(d.Rand, []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get", "PROPFIND"})
	return r.method != r.o.method && !d.ends(r)
}

// ends reports whether a request is the one that must come last: it drains the server.
func (d *drawer) ends(r *request) bool { return strings.HasPrefix(r.o.path, wire.DrainServer.Path) }

func otherPath(d *drawer, r *request) bool {
	o := *r.o
	o.path += pick(d.Rand, []string{"/", "//", "/x", "%2f", "%00", "/..", "/../..", ";a=b", "/%2e%2e/", "/" + strings.Repeat("a/", 200), strconv.Itoa(d.IntN(10))})
	r.o = &o
	return !d.ends(r)
}

func strayBody(d *drawer, r *request) bool {
	if len(r.o.contents) > 0 {
		return false
	}
	r.bare, r.text = true, pick(d.Rand, []string{"{}", "null", "x", `{"unknown":1}`, strings.Repeat("x", 100_000)})
	return true
}

func pushed(_ *drawer, r *request) bool {
	described, _ := r.o.answers["200"].(map[string]any)
	contents, _ := described["content"].(map[string]any)
	if contents["text/event-stream"] == nil {
		return false
	}
	r.header.Set("Accept", "text/event-stream")
	r.waits = true
	return true
}

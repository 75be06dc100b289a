package apifuzz

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// drawer draws requests for operations of the document.
type drawer struct {
	*rand.Rand
	doc  *document
	mem  *memory
	now  time.Time // around which instants lie
	host string    // of the server
}

// request is a request to be, in parts that can be spoiled.
type request struct {
	o      *operation
	method string
	path   map[string]string
	query  []pair
	header http.Header
	body   value // nil: none
	text   string
	spoilt string   // what was done to it; "": it is valid
	wants  []string // codes of which the answer must have one; none: any
	bare   bool     // text is the body as it stands
	raw    []byte   // the whole request, for a connection of its own
	waits  bool     // it may wait for longer than the fuzzer does
}

type pair struct{ name, value string }

// subject is what a request is about.
type subject struct {
	id    string
	lease lease
	wait  wait
	graph graph
	post  post
}

// states are those in which an operation can succeed.
var states = map[string][]string{
	wire.ReplayExecution.ID:    {"succeeded", "failed", "cancelled", "expired"},
	wire.DeleteExecution.ID:    {"succeeded", "failed", "cancelled", "expired"},
	wire.GetExecutionResult.ID: {"succeeded"},
	wire.GetAttempt.ID:         {"running", "succeeded", released},
	wire.ClaimResumed.ID:       {released},
	wire.RevokeLease.ID:        {"running"},
	wire.HoldExecution.ID:      {"ready", "delayed"},
	wire.ReleaseHold.ID:        {"blocked"},
	wire.ClaimExecution.ID:     {"ready"},
	wire.CancelExecution.ID:    {"ready", "delayed", "blocked"},
	wire.SetPriority.ID:        {"ready", "delayed"},
}

// valid draws a request that the document allows.
func (d *drawer) valid(o *operation) *request {
	r := &request{o: o, method: o.method, path: map[string]string{}, header: http.Header{}}
	about := subject{id: d.mem.execution(d.Rand, states[o.id]...), lease: d.mem.lease(d.Rand), wait: d.mem.wait(d, o), graph: d.mem.graph(d.Rand, o), post: d.mem.post(d.Rand)}
	fenced := slices.ContainsFunc(o.parameters, func(p parameter) bool { return p.name == "FlowFabric-Lease" })
	if fenced && (o.id != wire.CancelExecution.ID || d.IntN(3) == 0) {
		about.id = about.lease.execution
	}
	if slices.Contains(aboutWaits, o.id) {
		about.id = about.wait.execution
	}
	often := pick(d.Rand, []int{0, 20, 50}) // percent of optional fields
	if o.contents[jsonContent] != nil {
		r.body = d.draw(o, o.contents[jsonContent], "", about, often)
		d.tidy(o, r.body, about)
	}
	for _, p := range o.parameters {
		d.parameter(r, p, about, often)
	}
	d.rawBody(r, about)
	return r
}

func (d *drawer) parameter(r *request, p parameter, about subject, often int) {
	o := r.o
	switch p.in {
	case "path":
		r.path[p.name] = d.pathValue(o, p.name, about)
	case "query":
		onlyRaw := o.contents["*/*"] != nil && p.name != "encoding" && p.name != "wait_ms" // those of a body that is the input itself
		if onlyRaw || !p.required && d.IntN(100) >= often/3 {
			return
		}
		r.query = append(r.query, d.queryValue(o, p, about)...)
	case "header":
		if text := d.headerValue(p.name, about); d.IntN(100) < often/3 && text != "" {
			if p.name == "FlowFabric-Lease" {
				if body, ok := r.body.(*object); ok {
					body.drop("lease")
				}
			}
			r.header.Set(p.name, text)
		}
	}
}

// rawBody makes the body the payload itself, now and then, where the document allows it.
func (d *drawer) rawBody(r *request, about subject) {
	switch {
	case r.o.contents["*/*"] != nil && d.IntN(6) == 0:
		r.body, r.bare, r.text = nil, true, d.word()
		r.header.Set("Content-Type", pick(d.Rand, []string{"text/plain", "application/octet-stream", "image/png"}))
		if r.o.id == wire.SubmitExecution.ID {
			r.query = append(r.query, pair{"kind", "job"})
		} else {
			r.header.Set("FlowFabric-Lease", about.lease.fence)
		}
	case r.o.contents["application/x-ndjson"] != nil && d.IntN(3) == 0:
		r.body, r.bare, r.text = nil, true, `{"kind":"job"}`+"\n"+`{"kind":"job","lane":"slow"}`+"\n"
		r.header.Set("Content-Type", "application/x-ndjson")
	}
}

// tidy makes an object one that the rules accept: of fields that exclude each other one stays.
func (d *drawer) tidy(o *operation, body value, about subject) {
	b, ok := body.(*object)
	if !ok {
		return
	}
	for _, x := range []string{"input", "result", "detail", "continuation", "payload"} {
		forms := []string{x, x + "_text", x + "_bytes"}
		keep := pick(d.Rand, forms)
		for _, form := range forms {
			if form != keep {
				b.drop(form)
			}
		}
		if b.drop(x + "_content_type"); b.has(x+"_text") && d.IntN(2) == 0 {
			b.set(x+"_content_type", "text/csv")
		}
	}
	if b.has("delay_ms") {
		b.drop("delay_until")
		b.drop("until")
	}
	if o.id == wire.DelayExecution.ID && !b.has("until") {
		b.set("delay_ms", raw("1000"))
	}
	if o.id == wire.StartBulk.ID {
		d.tidyBulk(b)
	}
	if slices.ContainsFunc(o.parameters, func(p parameter) bool { return p.name == "FlowFabric-Lease" }) && o.id != wire.CancelExecution.ID {
		b.set("lease", about.lease.text)
	}
	d.tidyWait(o, b)
	for i := range b.values {
		if items, ok := b.values[i].([]value); ok {
			for _, item := range items {
				d.tidy(&operation{}, item, about)
			}
		}
	}
}

func (d *drawer) tidyBulk(b *object) {
	keep := pick(d.Rand, []string{"filter", "ids"})
	for _, name := range []string{"filter", "ids", "all", "args", "rate_per_second"} {
		b.drop(name)
	}
	if keep == "ids" {
		b.set("ids", []value{d.mem.execution(d.Rand)})
	} else {
		filter := &object{}
		filter.set("kind", []value{"job"})
		b.set("filter", filter)
	}
	action := pick(d.Rand, []string{"cancel", "hold", "release_hold", "replay"})
	b.set("action", action)
	b.set("max_affected", raw("20"))
}

// draw draws a value of a schema.
func (d *drawer) draw(o *operation, s schema, name string, about subject, often int) value {
	s = d.doc.resolve(s)
	if v, ok := d.known(o, name, about); ok {
		if s["type"] == "array" {
			return []value{v}
		}
		return v
	}
	if all := list(s["enum"]); len(all) > 0 {
		return pick(d.Rand, all)
	}
	if all := list(s["anyOf"]); len(all) > 0 {
		return d.draw(o, pick(d.Rand, all).(schema), name, about, often)
	}
	kind, _ := s["type"].(string)
	if all := list(s["type"]); len(all) > 0 {
		kind, _ = pick(d.Rand, all).(string)
	}
	switch kind {
	case "boolean":
		return d.IntN(2) == 0
	case "integer", "number":
		return raw(strconv.FormatInt(d.number(s), 10))
	case "string":
		return d.text(s)
	case "array":
		items := make([]value, 1+d.IntN(3))
		for i := range items {
			items[i] = d.draw(o, s["items"].(schema), singular(name), about, often)
		}
		return items
	case "object":
		return d.object(o, s, about, often)
	case "null":
		return nil
	default:
		return d.anything(3)
	}
}

func singular(name string) string { return strings.TrimSuffix(name, "s") }

func (d *drawer) object(o *operation, s schema, about subject, often int) value {
	fields, ok := s["properties"].(map[string]any)
	if !ok {
		m := &object{}
		values, _ := s["additionalProperties"].(schema)
		for range d.IntN(3) {
			m.set(pick(d.Rand, []string{"a", "team", "region"}), d.draw(o, values, "", about, often))
		}
		return m
	}
	m := &object{closed: s["additionalProperties"] == false}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(list(s["required"]), any(name)) || d.IntN(100) < often {
			m.set(name, d.draw(o, fields[name].(schema), name, about, often*3/4)) // rarer with each level: nodes have flows, which have nodes
		}
	}
	return m
}

func (d *drawer) number(s schema) int64 {
	least, most := int64(0), int64(1000)
	if v, ok := s["minimum"].(float64); ok {
		least = int64(v)
	}
	if v, ok := s["maximum"].(float64); ok {
		most = int64(v)
	}
	return least + d.Int64N(max(most-least, 0)+1)
}

func (d *drawer) text(s schema) value {
	switch {
	case s["format"] == "date-time":
		return d.instant()
	case s["contentEncoding"] == "base64":
		return base64.StdEncoding.EncodeToString([]byte(d.word()))
	default:
		return d.word()
	}
}

func (d *drawer) instant() string {
	return d.now.Add(time.Duration(d.Int64N(int64(48 * time.Hour)))).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func (d *drawer) word() string {
	return pick(d.Rand, []string{"a", "red", "blue-7", "ünï", "a b", "42", "é漢字", "x.y/z", `"quoted"`, "0"})
}

// anything is some JSON value.
func (d *drawer) anything(depth int) value {
	switch kind := d.IntN(7); {
	case kind == 0:
		return nil
	case kind == 1:
		return d.IntN(2) == 0
	case kind == 2:
		return raw(pick(d.Rand, []string{"0", "-1", "1e400", "3.25", "123456789012345678901234567890", "-0"}))
	case kind == 3 && depth > 0:
		return []value{d.anything(depth - 1), d.anything(depth - 1)}
	case kind == 4 && depth > 0:
		m := &object{}
		m.set(d.word(), d.anything(depth-1))
		return m
	default:
		return d.word()
	}
}

func (d *drawer) uuid() string {
	return fmt.Sprintf("0198f0a0-%04x-7%03x-8%03x-%012x", d.IntN(1<<16), d.IntN(1<<12), d.IntN(1<<12), d.Int64N(1<<48))
}

// url is where the request goes.
func (r *request) url(base string) string {
	path := r.o.path
	for name, v := range r.path {
		path = strings.ReplaceAll(path, "{"+name+"}", v)
	}
	var query []string
	for _, p := range r.query {
		query = append(query, url.QueryEscape(p.name)+"="+p.value)
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	return base + path
}

package wire

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestU2_every_request_comes_through_as_it_was_sent(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			deliver := newDelivery()
			testseed.Check(t, func(t *rapid.T) {
				sent := drawRequest(t, o.Request)
				m, err := EncodeRequest(o, sent)
				if err != nil {
					t.Fatalf("%+v: %v", sent, err)
				}
				got := reflect.New(o.Request).Interface()
				if id, err := deliver.to(m, got); id != o.ID || err != nil {
					t.Fatalf("%s arrived at %q: %v\n%s", m.Path+"?"+m.Query, id, err, m.Body)
				}
				if !reflect.DeepEqual(got, sent) {
					t.Fatalf("%s %s?%s %v\n%s\nsent %+v\ngot  %+v", m.Method, m.Path, m.Query, m.Header, m.Body, sent, got)
				}
			})
		})
	}
}

// delivery routes messages as a server does, and reads them there.
type delivery struct {
	mux  *http.ServeMux
	id   string // of the operation at which the message arrived
	read func(r *http.Request)
}

func newDelivery() *delivery {
	d := &delivery{mux: http.NewServeMux()}
	for _, o := range Operations() {
		d.mux.HandleFunc(o.Method+" "+o.Path, func(_ http.ResponseWriter, r *http.Request) {
			d.id = o.ID
			d.read(r)
		})
	}
	return d
}

func (d *delivery) to(m Message, into any) (id string, err error) {
	r := httptest.NewRequest(m.Method, m.Path+"?"+m.Query, http.NoBody)
	r.Header = m.Header
	d.id = ""
	d.read = func(r *http.Request) {
		err = DecodeRequest(Incoming{PathValue: r.PathValue, Query: r.URL.RawQuery, Header: r.Header, Body: m.Body}, into)
	}
	d.mux.ServeHTTP(httptest.NewRecorder(), r)
	return d.id, err
}

func TestU7_ids_stand_in_paths_percent_encoded(t *testing.T) {
	t.Parallel()
	m, err := Encode(GetExecution, &GetExecutionRequest{ByID: ByID{"{fp:3}:0190c1d2-0000-7000-8000-000000000000"}, View: ViewFull})
	if err != nil || m.Path != "/v1/executions/%7Bfp:3%7D:0190c1d2-0000-7000-8000-000000000000" || m.Query != "view=full" || m.Body != nil {
		t.Errorf("%+v %v", m, err)
	}
	for name, want := range map[string]string{"a/b": "/v1/lanes/a%2Fb", "..": "/v1/lanes/%2E%2E", "?": "/v1/lanes/%3F", "%": "/v1/lanes/%25"} {
		if m, err := Encode(GetLane, &ByLane{name}); err != nil || m.Path != want {
			t.Errorf("%s: %s %v", name, m.Path, err)
		}
	}
	if _, err := Encode(GetLane, &ByLane{}); err == nil || !strings.HasPrefix(err.Error(), "invalid_argument: path.lane") {
		t.Errorf("a lane without a name: %v", err)
	}
}

// faults reads a request and lists what is wrong with it.
func faults[Req, Ans any](c Call[Req, Ans], in Incoming) []string {
	if in.PathValue == nil {
		in.PathValue = func(string) string { return "x" }
	}
	_, err := requestOf(c, in)
	var all Errors
	errors.As(err, &all)
	list := []string{}
	for _, e := range all {
		list = append(list, e.Code+" "+e.Field+": "+e.Detail+"; "+e.Hint)
	}
	return list
}

func expectFaults(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q\nwant %q", got[i], want[i])
		}
	}
}

func TestU5_faults_of_query_header_and_body_are_told_together(t *testing.T) {
	t.Parallel()
	in := Incoming{
		Query:  "encodin=bytes&wait_ms=x&kind=a&kind=b",
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   []byte(`{"kinds":"a"}`),
	}
	expectFaults(t, faults(SubmitExecution, in),
		`unknown_field query.encodin: unknown query parameter; did you mean "encoding"?`,
		`invalid_argument query.wait_ms: expected a whole number; `,
		`invalid_argument query.kind: this query parameter is given twice; give it once`,
		`unknown_field /kinds: this field is not known; did you mean "kind"?`,
		`missing_field /kind: this field is required; `)
	in.Body = []byte(`{`)
	expectFaults(t, faults(SubmitExecution, in), `invalid_json : line 1, column 2: the text ends where a name in quotes should stand; `)
}

func TestU5_wrong_parameters_are_told_with_their_names(t *testing.T) {
	t.Parallel()
	expectFaults(t, faults(ListExecutions, Incoming{Query: "limit=&view=all&created_from=2026-01-31T09:30:00+02:00&%zz=1"}),
		`invalid_argument query.limit: expected a whole number; `,
		`invalid_argument query.view: unknown value; use ids or summary or full`,
		`invalid_argument query.created_from: this is not an RFC 3339 instant; write the + of an offset as %2B in a query, and T between date and time`,
		`invalid_argument query: the query is not percent-encoded; write % as %25`)
	expectFaults(t, faults(PutLane, Incoming{Header: http.Header{"If-Match": {"*"}}}),
		`invalid_argument header.If-Match: not a revision; send the number from the field revision, as "7"`)
	expectFaults(t, faults(RenewLease, Incoming{Header: http.Header{"Flowfabric-Lease": {"x"}}}),
		`invalid_handle header.FlowFabric-Lease: not the text form of a lease; send the fence of the task: <lease_id>.<lease_epoch>.<attempt_id>`)
	expectFaults(t, faults(ListBulkItems, Incoming{Query: "ok=1"}), `invalid_argument query.ok: expected true or false; `)
	expectFaults(t, faults(DrainWorkers, Incoming{}), `missing_field query.worker_id: this parameter is required; `)
}

func TestU5_a_body_of_a_wrong_content_type_is_refused(t *testing.T) {
	t.Parallel()
	body := func(contentType string) Incoming {
		return Incoming{Header: http.Header{"Content-Type": {contentType}}, Body: []byte(`{"lanes":["a"]}`)}
	}
	for _, contentType := range []string{"", "application/json", "Application/JSON; charset=UTF-8", "application/merge-patch+json"} {
		expectFaults(t, faults(Nudge, body(contentType)))
	}
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "nonsense/"} {
		expectFaults(t, faults(Nudge, body(contentType)),
			"unsupported_media_type header.Content-Type: the content type of the body is not accepted here; send Content-Type: application/json")
	}
	expectFaults(t, faults(SubmitExecutions, body("application/x-ndjson")))
	if got := faults(SubmitExecutions, body("text/plain")); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

func TestU5_a_call_without_a_body_takes_none(t *testing.T) {
	t.Parallel()
	expectFaults(t, faults(DrainServer, Incoming{}))
	expectFaults(t, faults(DrainServer, Incoming{Body: []byte(" {} \n")}))
	expectFaults(t, faults(DrainServer, Incoming{Body: []byte(`{"force":true}`)}),
		"unknown_field /force: this field is not known; leave it out; no fields are known here")
	expectFaults(t, faults(HoldExecution, Incoming{}))
	expectFaults(t, faults(SetPriority, Incoming{}), "missing_field /priority: this field is required; ")
}

func TestU34_lists_stand_by_comma_and_tags_by_name(t *testing.T) {
	t.Parallel()
	got, err := requestOf(ListExecutions, Incoming{Query: `status=ready,failed&status=blocked&kind=a%2Cb&creator=x\,y,c:\d&tag.team=red&tag.any&tag.empty=`})
	if err != nil {
		t.Fatal(err)
	}
	red, empty := "red", ""
	want := &ListExecutionsRequest{FilterFields: FilterFields{
		Status: []string{"ready", "failed", "blocked"}, Kind: []string{"a", "b"}, Creator: []string{"x,y", `c:\d`},
		Tags: map[string]*string{"team": &red, "any": nil, "empty": &empty},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if f := got.Filter(); !reflect.DeepEqual(f.Fields(), want.FilterFields) {
		t.Errorf("%+v", f)
	}
}

func TestU32_a_body_that_is_not_json_is_the_input_itself(t *testing.T) {
	t.Parallel()
	in := Incoming{Query: "kind=convert&priority=7&tag.team=red&lane=gpu&idempotency_key=k", Header: http.Header{"Content-Type": {"image/png"}}, Body: []byte("\x89PNG{")}
	req, err := requestOf(SubmitExecution, in)
	if err != nil {
		t.Fatal(err)
	}
	s, err := req.Submission()
	if err != nil || s.Kind != "convert" || s.Priority != 7 || s.Lane != "gpu" || s.IdempotencyKey != "k" || s.Tags["team"] != "red" {
		t.Errorf("%+v %v", s, err)
	}
	if p := s.Input; !bytes.Equal(p.Data, in.Body) || p.ContentType != "image/png" {
		t.Errorf("%+v", p)
	}
	in.Query = "tag.team"
	req, err = requestOf(SubmitExecution, in)
	if err != nil {
		t.Fatal(err)
	}
	var all Errors
	if _, err = req.Submission(); !errors.As(err, &all) || len(all) != 2 || all[0].Field != "query.kind" || all[1].Field != "query.tag.team" {
		t.Errorf("%v", err)
	}
}

func TestU32_a_json_body_says_everything_itself(t *testing.T) {
	t.Parallel()
	req, err := requestOf(SubmitExecution, Incoming{Query: "lane=gpu", Body: []byte(`{"kind":"a","input":{"x": 1}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := req.Submission(); err == nil || !strings.HasPrefix(err.Error(), "unknown_field: query.lane") {
		t.Errorf("%v", err)
	}
	req.Lane = ""
	if s, err := req.Submission(); err != nil || s.Kind != "a" || string(s.Input.Data) != `{"x": 1}` {
		t.Errorf("%+v %v", s, err)
	}
}

func TestU68_a_raw_body_is_the_result(t *testing.T) {
	t.Parallel()
	in := Incoming{
		PathValue: func(string) string { return "x" }, Header: http.Header{"Content-Type": {"text/csv"}, "Flowfabric-Lease": {"a.1.b"}}, Body: []byte("1,2"),
	}
	req, err := requestOf(CompleteExecution, in)
	if err != nil || req.LeaseHeader != (LeaseRef{"a", 1, "b"}) || string(req.Result().Data) != "1,2" || req.Result().ContentType != "text/csv" {
		t.Errorf("%+v %v", req, err)
	}
	step, err := requestOf(PutStep, in)
	if err != nil || string(step.Result().Data) != "1,2" {
		t.Errorf("%+v %v", step, err)
	}
}

func TestU68_a_json_body_holds_the_result(t *testing.T) {
	t.Parallel()
	in := Incoming{PathValue: func(string) string { return "x" }, Body: []byte(`{"lease":"a.1.b","result":[1, 2]}`)}
	req, err := requestOf(CompleteExecution, in)
	if err != nil || string(req.Result().Data) != "[1, 2]" || req.Body.Lease.Epoch != 1 {
		t.Errorf("%+v %v", req, err)
	}
	step, err := requestOf(PutStep, in)
	if err != nil || string(step.Result().Data) != "[1, 2]" {
		t.Errorf("%+v %v", step, err)
	}
}

func TestU6_an_instant_that_cannot_be_written_is_not_sent(t *testing.T) {
	t.Parallel()
	never := TimeOf(time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC))
	if _, err := Encode(ListAudit, &AuditRequest{From: never}); err == nil || !strings.HasPrefix(err.Error(), "invalid_argument: query.from") {
		t.Errorf("%v", err)
	}
	var delay DelayRequest
	delay.ID, delay.Body.Until = "x", never
	if _, err := Encode(DelayExecution, &delay); err == nil || !strings.HasPrefix(err.Error(), "invalid_argument: the instant") {
		t.Errorf("%v", err)
	}
}

func TestU53_a_patch_without_changes_is_an_empty_object(t *testing.T) {
	t.Parallel()
	m, err := Encode(PatchTags, &PatchTagsRequest{ByID: ByID{"x"}})
	if err != nil || string(m.Body) != "{}" {
		t.Errorf("%s %v", m.Body, err)
	}
}

func TestU48_a_delete_without_anything_to_say_has_no_body(t *testing.T) {
	t.Parallel()
	req := ActionRequest{ByID: ByID{"x"}}
	if m, err := Encode(ReleaseHold, &req); err != nil || m.Body != nil || m.Header.Get("Content-Type") != "" {
		t.Errorf("%+v %v", m, err)
	}
	req.Body.Reason = "over"
	if m, err := Encode(ReleaseHold, &req); err != nil || string(m.Body) != `{"reason":"over"}` || m.Header.Get("Content-Type") != ContentJSON {
		t.Errorf("%+v %v", m, err)
	}
}

func TestU33_the_head_is_read_without_the_body(t *testing.T) {
	t.Parallel()
	_, err := headOf(SubmitExecutions, Incoming{Header: http.Header{"Content-Type": {"application/x-ndjson"}}})
	if err != nil {
		t.Error(err)
	}
	if _, err := headOf(SubmitExecutions, Incoming{Query: "x=1"}); err == nil {
		t.Error("an unknown parameter was taken")
	}
}

func TestU18_a_call_waits_as_long_as_it_is_told(t *testing.T) {
	t.Parallel()
	ms := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		fields    WaitFields
		want      time.Duration
		preferred bool
	}{
		{WaitFields{}, 0, false},
		{WaitFields{WaitMS: ms(1500)}, 1500 * time.Millisecond, false},
		{WaitFields{WaitMS: ms(0), Prefer: "wait=5"}, 0, false},
		{WaitFields{Prefer: "wait=5"}, 5 * time.Second, true},
		{WaitFields{Prefer: `respond-async, Wait = "7"; x`}, 7 * time.Second, true},
		{WaitFields{Prefer: "wait=soon, return=minimal"}, 0, false},
		{WaitFields{WaitMS: ms(1 << 62)}, 9223372036854 * time.Millisecond, false},
	} {
		if got, preferred, err := c.fields.Wait(); got != c.want || preferred != c.preferred || err != nil {
			t.Errorf("%+v: %s %t %v", c.fields, got, preferred, err)
		}
	}
	if _, _, err := (WaitFields{WaitMS: ms(-1)}).Wait(); err == nil {
		t.Error("a negative wait was taken")
	}
}

func TestU19_the_header_wins_over_the_query(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields PositionFields
		want   string
	}{{PositionFields{After: "a"}, "a"}, {PositionFields{After: "a", LastID: "b"}, "b"}, {PositionFields{After: "a", LastID: "b", LastEventID: "c"}, "c"}} {
		if got := c.fields.Position(); got != c.want {
			t.Errorf("%+v: %s", c.fields, got)
		}
	}
}

func TestU17_a_revision_is_read_from_an_entity_tag_or_a_number(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"7"`, `7`, `W/"7"`} {
		var r Revision
		if err := r.UnmarshalText([]byte(text)); err != nil || r != 7 {
			t.Errorf("%s: %d %v", text, r, err)
		}
	}
	for _, text := range []string{``, `*`, `"7`, `"-1"`, `"7", "8"`, `x`} {
		var r Revision
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s became %d", text, r)
		}
	}
}

func TestU4_an_answer_may_have_fields_that_the_client_does_not_know(t *testing.T) {
	t.Parallel()
	got, err := answerOf(GetExecutionState, []byte(`{"status":"ready","public_state":"waiting","mood":"fine"}`))
	if err != nil || *got != (ExecutionState{"ready", "waiting"}) {
		t.Errorf("%+v %v", got, err)
	}
}

func requestOf[Req, Ans any](_ Call[Req, Ans], in Incoming) (*Req, error) {
	req := new(Req)
	return req, DecodeRequest(in, req)
}

func headOf[Req, Ans any](_ Call[Req, Ans], in Incoming) (*Req, error) {
	req := new(Req)
	return req, DecodeHead(in, req)
}

func answerOf[Req, Ans any](_ Call[Req, Ans], text []byte) (*Ans, error) {
	answer := new(Ans)
	return answer, DecodeAnswer(text, answer)
}

package flowfabric

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/testseed"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// roundTrip writes a value, and reads it again. What is written must be in the form of the wire type.
func roundTrip[T, W any](t *testing.T, name string, prepare func(*rapid.T, *T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		testseed.Check(t, func(t *rapid.T) {
			var value, read T
			draw(t, reflect.ValueOf(&value).Elem())
			if prepare != nil {
				prepare(t, &value)
			}
			text, err := wire.Marshal(&value)
			if err != nil {
				t.Fatalf("writing %+v: %v", value, err)
			}
			strict := json.NewDecoder(bytes.NewReader(text))
			strict.DisallowUnknownFields()
			if err := strict.Decode(new(W)); err != nil {
				t.Fatalf("%s is not in the form of %T: %v", text, *new(W), err)
			}
			if err := wire.Unmarshal(text, &read); err != nil {
				t.Fatalf("reading %s: %v", text, err)
			}
			if !reflect.DeepEqual(read, value) {
				t.Fatalf("%s\n wrote %+v\n  read %+v", text, value, read)
			}
		})
	})
}

// draw fills a value with anything that the API can carry.
func draw(t *rapid.T, v reflect.Value) {
	switch into := v.Addr().Interface().(type) {
	case *time.Time:
		if rapid.Bool().Draw(t, "time") {
			*into = time.UnixMilli(rapid.Int64Range(1, 1<<42).Draw(t, "ms")).UTC()
		}
		return
	case *time.Duration:
		*into = time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "ms")) * time.Millisecond
		return
	case *Payload:
		*into = drawPayload(t)
		return
	case *json.RawMessage:
		*into = json.RawMessage(`{"at":` + string(must(json.Marshal(rapid.StringN(0, 8, -1).Draw(t, "json")))) + `}`)
		return
	case *api.BudgetDefinition:
		drawKind(t, v)
		notNil(&into.Dimensions)
		return
	case *api.BudgetReset: // of one sort
		if drawKind(t, v); into.Unit != "" {
			*into = api.BudgetReset{Type: core.ResetCalendar, Unit: into.Unit, Timezone: into.Timezone}
		} else {
			*into = api.BudgetReset{Type: core.ResetInterval, Every: into.Every, AnchorAt: into.AnchorAt}
		}
		return
	case *Condition:
		*into = drawCondition(t, 2)
		return
	case *api.NamedInput:
		drawKind(t, v)
		settleInput(into)
		return
	case *SignalRecord:
		if drawKind(t, v); rapid.Bool().Draw(t, "omitted") {
			into.Payload = api.Unloaded("image/png", rapid.IntRange(1, 1<<20).Draw(t, "size"))
		}
		return
	case *error, *map[string]any, *Token:
		return
	}
	drawKind(t, v)
}

func notNil[K comparable, V any](m *map[K]V) {
	if *m == nil {
		*m = map[K]V{}
	}
}

func drawKind(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				draw(t, v.Field(i))
			}
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			draw(t, v.Elem())
		}
	case reflect.Slice:
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			item := reflect.New(v.Type().Elem()).Elem()
			if item.Kind() == reflect.Pointer {
				item.Set(reflect.New(item.Type().Elem()))
				draw(t, item.Elem())
			} else {
				draw(t, item)
			}
			v.Set(reflect.Append(v, item))
		}
	case reflect.Map:
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			draw(t, key)
			draw(t, item)
			v.SetMapIndex(key, item)
		}
	case reflect.String:
		v.SetString(rapid.StringN(0, 12, -1).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(0, 1e6).Draw(t, "number"))
	default:
		v.SetInt(rapid.Int64Range(0, 1<<40).Draw(t, "number"))
	}
}

// drawCondition draws a tree that is not deeper than said.
func drawCondition(t *rapid.T, depth int) Condition {
	text := func(what string) string { return rapid.StringN(0, 8, -1).Draw(t, what) }
	switch rapid.IntRange(0, 3+min(depth, 1)).Draw(t, "condition") {
	case 0:
		return OnSignal(text("key"), text("name"))
	case 1:
		c := CountOf(rapid.IntRange(0, 5).Draw(t, "n"), DistinctSources, append(rapid.SliceOfN(rapid.String(), 0, 2).Draw(t, "keys"), "k")...)
		c.Name, c.SourceTypes = text("name"), append([]string{"operator"}, text("source"))
		return c
	case 2:
		return OperatorOnly()
	case 3:
		return TimeoutOnly()
	default:
		return AnyOf(drawCondition(t, depth-1), AllOf(drawCondition(t, depth-1)))
	}
}

// drawPayload is nothing, or any bytes under any content type. JSON is compact, or marked to be shown as bytes.
func drawPayload(t *rapid.T) Payload {
	data := append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data")...)
	switch rapid.IntRange(0, 4).Draw(t, "payload") {
	case 0:
		return Payload{}
	case 1:
		var compact bytes.Buffer
		if json.Compact(&compact, data) == nil { // by chance
			data = compact.Bytes()
		}
		return Payload{Data: data, ContentType: rapid.SampledFrom([]string{wire.ContentJSON, wire.ContentText, wire.ContentBytes, "image/png"}).Draw(t, "type")}
	case 2:
		return Text(rapid.String().Draw(t, "text"))
	case 3:
		return Bytes(must(wire.Marshal(rapid.String().Draw(t, "json"))), wire.ContentJSON)
	default:
		return Bytes(slices.Concat([]byte(" [1,\n<2> "), data), "application/problem+json")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func drawRefusal(t *rapid.T) error {
	if rapid.Bool().Draw(t, "accepted") {
		return nil
	}
	e := &Error{}
	draw(t, reflect.ValueOf(e).Elem())
	e.Code = "stale_lease"
	e.Field = "/" + e.Field // fields in JSON are pointers (U11)
	e.Current = map[string]any{"status": "running", "lease_epoch": int64(7), "share": 0.5}
	return e
}

func TestU9_every_answer_comes_back_as_it_was_written(t *testing.T) {
	t.Parallel()
	roundTrip[Execution, Execution](t, "Execution", func(t *rapid.T, x *Execution) { settle(t, x) })
	roundTrip[api.Attempt, api.Attempt](t, "Attempt", nil)
	roundTrip[api.Lease, wire.Lease](t, "Lease", nil)
	roundTrip[api.LeaseRecord, api.LeaseRecord](t, "LeaseRecord", nil)
	roundTrip[api.StepRecord, api.StepRecord](t, "StepRecord", nil)
	roundTrip[api.Count, api.Count](t, "Count", nil)
	roundTrip[api.Explanation, api.Explanation](t, "Explanation", nil)
	roundTrip[api.BulkJob, api.BulkJob](t, "BulkJob", nil)
	roundTrip[api.BulkItem, api.BulkItem](t, "BulkItem", func(t *rapid.T, i *api.BulkItem) { i.Err = drawRefusal(t) })
	roundTrip[api.Revocation, api.RevealedRevocation](t, "Revocation", func(t *rapid.T, r *api.Revocation) {
		r.HandToErr = drawRefusal(t)
		if r.Grant != nil {
			r.Grant.Key = api.GrantKey{}
		}
	})
	roundTrip[api.Grant, api.RevealedGrant](t, "Grant", func(_ *rapid.T, g *api.Grant) { g.Key = api.GrantKey{} })
	roundTrip[api.RegisterResult, api.RegisterResult](t, "Registered", nil)
	roundTrip[api.Claimed, api.Claimed](t, "Claimed", func(_ *rapid.T, c *api.Claimed) { settleClaimed(c) })
	roundTrip[api.ClaimAnswer, api.ClaimAnswer](t, "ClaimAnswer", func(_ *rapid.T, a *api.ClaimAnswer) {
		for _, c := range a.Tasks {
			settleClaimed(c)
		}
	})
	roundTrip[Page[api.StepRecord], Page[api.StepRecord]](t, "Page", func(_ *rapid.T, p *Page[api.StepRecord]) { p.Items = append([]api.StepRecord{}, p.Items...) })
	roundTrip[Page[*api.Lease], wire.Page[wire.Lease]](t, "Page of pointers", func(_ *rapid.T, p *Page[*api.Lease]) { p.Items = append([]*api.Lease{}, p.Items...) })
}

// workFields has the fields alone: methods would hide the error beside them from encoding/json.
type workFields api.WorkAnswerFields

func TestU22_answers_about_items_come_back_with_their_refusals(t *testing.T) {
	t.Parallel()
	roundTrip[SubmitResult, SubmitResult](t, "SubmitResult", func(t *rapid.T, r *SubmitResult) {
		if r.Err = drawRefusal(t); r.Err != nil {
			*r = SubmitResult{Err: r.Err}
		}
	})
	roundTrip[api.WorkAnswer, struct {
		workFields
		Error *wire.Problem `json:"error"`
	}](t, "WorkAnswer", func(t *rapid.T, a *api.WorkAnswer) {
		if a.Renewal.Err = nil; a.Renewal.TTL == 0 {
			a.Renewal = api.Renewal{}
		}
		if a.Resume != nil {
			a.Outcome = api.WaitAlreadySatisfied
			a.Resume = &Resume{SuspensionID: a.SuspensionID, Cause: a.Resume.Cause, Signals: append([]SignalRecord{}, a.Resume.Signals...)}
		}
		if a.Usage != nil {
			a.Usage.Outcome = api.UsageOK
		}
		if a.Spawned != nil {
			notNil(&a.Spawned.IDs)
			a.Spawned.Wait = a.Waited
		}
		if a.Waited != nil {
			a.Outcome, a.Waited.Outcome = api.ChildrenReady, api.ChildrenReady
			a.Resume = nil
		}
		for i := range a.Waitpoints {
			a.Waitpoints[i].CallbackURL = "" // it is not written
			if w := &a.Waitpoints[i]; a.SuspensionID != "" {
				*w = Waitpoint{ID: w.ID, Key: w.Key, SuspensionID: a.SuspensionID, ExpiresAt: w.ExpiresAt}
			}
		}
		if a.SuspensionID == "" && len(a.Waitpoints) > 1 {
			a.Waitpoints = a.Waitpoints[:1]
		}
		if a.Err = drawRefusal(t); a.Err != nil {
			*a = api.WorkAnswer{Err: a.Err}
		}
	})
	roundTrip[api.Heartbeat, api.Heartbeat](t, "Heartbeat", func(t *rapid.T, h *api.Heartbeat) {
		for i := range h.Leases {
			h.Leases[i].Drain = false // the heartbeat says it
			if h.Leases[i].Err = drawRefusal(t); h.Leases[i].Err != nil {
				h.Leases[i] = api.Renewal{Err: h.Leases[i].Err}
			}
		}
	})
}

// settle makes the parts of an execution agree.
func settle(t *rapid.T, x *Execution) {
	if rapid.Bool().Draw(t, "left out") {
		x.Input = api.Unloaded(x.Input.ContentType, 1<<20)
	}
	for i := range x.Inputs {
		settleInput(&x.Inputs[i])
	}
}

func settleClaimed(c *api.Claimed) {
	for i := range c.Inputs {
		settleInput(&c.Inputs[i])
	}
}

func TestU8_a_submission_comes_back_as_it_was_written(t *testing.T) {
	t.Parallel()
	roundTrip[Submission, Submission](t, "Submission", func(t *rapid.T, s *Submission) {
		if s.Delay != 0 {
			s.StartAt = time.Time{}
		}
		if s.Kind == "" {
			s.Kind = "k"
		}
		s.Policy = nil
	})
}

func TestU11_a_problem_keeps_everything_that_an_error_says(t *testing.T) {
	t.Parallel()
	roundTrip[Error, wire.Problem](t, "Error", func(_ *rapid.T, e *Error) {
		e.Current = map[string]any{"status": "running", "limit": int64(12), "ratio": 1.5}
	})
	text := string(must(wire.Marshal(calls.Refuse("execution_not_found", "there is no such execution").At("/id", "look it up"))))
	const want = `{"type":"/problems/execution_not_found","title":"Execution not found","status":404,"detail":"there is no such execution",` +
		`"code":"execution_not_found","class":"not_found","field":"/id","hint":"look it up","retryable":false}`
	if text != want {
		t.Errorf("a problem is %s\nwant %s", text, want)
	}
}

func TestU11_a_problem_hides_what_the_database_said(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial tcp 10.0.0.7: secret")
	for _, e := range []*Error{
		calls.Refuse("internal", "internal error: %w", secret), calls.Refuse("store_unavailable", "the store does not answer: %w", secret),
	} {
		if text := must(wire.Marshal(e)); bytes.Contains(text, []byte("secret")) {
			t.Errorf("the problem of %s tells its cause: %s", e.Code, text)
		}
	}
}

package apifuzz

import (
	"math/rand/v2"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// post is a delivery of a webhook.
type post struct{ endpoint, delivery string }

// post is one of the newest deliveries.
func (m *memory) post(r *rand.Rand) post {
	if len(m.posts) == 0 {
		return post{"unknown", "unknown"}
	}
	return pick(r, m.posts)
}

// receiver is where webhooks lead: nothing listens on the port for discarded data.
const receiver = "http://127.0.0.1:9/"

// filters keep few events: each event that an endpoint gets is a delivery that fails.
var filters = []raw{`{"kinds":["bulk."]}`, `{"kinds":["quota.","lane."]}`, `{"lane":"rare","outcome":"failed"}`, `{"tags":{"team":"none"}}`}

// ofWebhook draws a field that has to do with webhooks.
func (d *drawer) ofWebhook(o *operation, name string) (value, bool) {
	switch {
	case name == "url" && (o.id == wire.CreateWebhook.ID || o.id == wire.UpdateWebhook.ID):
		return receiver + strconv.Itoa(d.IntN(1000)), true
	case name == "filter" && (o.id == wire.CreateWebhook.ID || o.id == wire.UpdateWebhook.ID):
		return pick(d.Rand, filters), true
	case name == "secret":
		return "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", true
	case (name == "after" || name == "until") && o.id == wire.ReplayWebhook.ID:
		return d.mem.some(d.Rand, "next", "start"), true
	}
	return nil, false
}

// mostWebhooks is how many webhooks are left when things are made anew.
const mostWebhooks = 3

// tendWebhooks makes webhooks with a delivery each, which can be looked at, changed and deleted.
func (f *fuzzer) tendWebhooks() {
	ctx, webhooks := f.t.Context(), f.w.Admin().Webhooks()
	var ids []string
	for e, err := range webhooks.List(ctx) {
		if err != nil {
			f.t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	for _, id := range ids {
		_ = webhooks.Delete(ctx, id) // a call that is under way may have deleted it
	}
	f.mem.posts = nil
	for range mostWebhooks {
		endpoint := textIn(f.do(wire.CreateWebhook.Operation, "", `{"url":"`+receiver+`","filter":`+string(filters[0])+`}`), "endpoint_id")
		f.mem.posts = append(f.mem.posts, post{endpoint, textIn(f.do(wire.TestWebhook.Operation, endpoint, ""), "delivery_id")})
	}
}

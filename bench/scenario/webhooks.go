package scenario

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// webhooksPlan is E39..E43: how many events a second a receiver of this host gets, how soon it has one, and both again beside receivers that do not
// answer.
type webhooksPlan struct {
	N        int `json:"events"`
	Rounds   int `json:"rounds"` // events that are awaited one by one
	InFlight int `json:"in_flight"`
	Dead     int `json:"dead"` // receivers that do not answer
}

func planWebhooks(cfg Config) (plan, error) {
	if cfg.Via == viaHTTP {
		return nil, errors.New("webhooks are sent to this host, which serve does not permit: run it embedded, or with --server on flowfabric dev")
	}
	return &webhooksPlan{N: pick(cfg, cfg.N, 20_000, 200), Rounds: pick(cfg, 0, 500, 10), InFlight: pick(cfg, cfg.InFlight, 64, 16), Dead: pick(cfg, 0, 4, 2)}, nil
}

// inbox is a receiver of this host that counts different events.
type inbox struct {
	server *http.Server
	url    string
	ended  chan error

	mu   sync.Mutex
	seen map[string]bool
	news chan struct{} // has an element after something has come
}

func openInbox(ctx context.Context, handle func(*inbox) http.HandlerFunc) (*inbox, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &inbox{url: "http://" + listener.Addr().String(), ended: make(chan error, 1), seen: map[string]bool{}, news: make(chan struct{}, 1)}
	b.server = &http.Server{Handler: handle(b), ReadHeaderTimeout: closing}
	go func() { b.ended <- b.server.Serve(listener) }()
	return b, nil
}

func (b *inbox) close() error {
	err := b.server.Close()
	<-b.ended
	return err
}

// counting answers at once.
func counting(b *inbox) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.seen[r.Header.Get("webhook-id")] = true
		b.mu.Unlock()
		select {
		case b.news <- struct{}{}:
		default:
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// silent takes requests and does not answer.
func silent(*inbox) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then a server does not notice that its client has gone
		<-r.Context().Done()
	}
}

func (b *inbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen)
}

func (p *webhooksPlan) take(ctx context.Context, t *trial) error {
	if err := p.submit(ctx, t); err != nil {
		return err
	}
	alone, err := p.replay(ctx, t, "alone")
	if err != nil {
		return err
	}
	if err := p.await(ctx, t, "submit_to_receiver"); err != nil {
		return err
	}
	undo, err := p.burden(ctx, t)
	if err != nil {
		return errors.Join(err, undo())
	}
	beside, err := p.replay(ctx, t, "beside_dead")
	if err == nil {
		err = p.await(ctx, t, "beside_dead")
	}
	t.sample.ThroughputPerS = float64(p.N) / alone.Seconds()
	t.sample.Counts["beside_dead_per_s"] = float64(p.N) / beside.Seconds()
	return errors.Join(err, undo())
}

// submit makes events of the past.
func (p *webhooksPlan) submit(ctx context.Context, t *trial) error {
	for from := 0; from < p.N; from += crowd {
		some := make([]flowfabric.Submission, min(crowd, p.N-from))
		for i := range some {
			some[i] = noop.Submission(nil, flowfabric.SubmitOptions{})
		}
		if _, err := t.place.client.SubmitMany(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// hook makes a webhook for submits.
func (p *webhooksPlan) hook(ctx context.Context, t *trial, url string) (id string, err error) {
	made, err := t.place.client.Admin().Webhooks().Create(ctx, api.NewWebhook{
		URL: url, MaxInFlight: p.InFlight, Filter: &api.WebhookFilter{Kinds: []string{"execution.submitted"}},
	})
	if err != nil {
		return "", err
	}
	return made.ID, nil
}

// replay sends the events of the past to a receiver that answers at once, and returns how long that took.
func (p *webhooksPlan) replay(ctx context.Context, t *trial, name string) (took time.Duration, err error) {
	b, err := openInbox(ctx, counting)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	id, err := p.hook(ctx, t, b.url)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := t.place.client.Admin().Webhooks().Replay(ctx, id, api.FromStart, ""); err != nil {
		return 0, err
	}
	err = t.await(ctx, "delivered "+name, p.N, b.count)
	took = time.Since(began)
	t.sample.check("delivered_"+name, 0, max(0, p.N-b.count()))
	return took, errors.Join(err, t.place.client.Admin().Webhooks().Delete(ctx, id))
}

// await takes the time from a submit until the receiver has its event.
func (p *webhooksPlan) await(ctx context.Context, t *trial, name string) (err error) {
	b, err := openInbox(ctx, counting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	id, err := p.hook(ctx, t, b.url)
	if err != nil {
		return err
	}
	var took measure.Durations
	for range p.Rounds {
		began := time.Now()
		if _, err := noop.Submit(ctx, t.place.client.Client, nil); err != nil {
			return err
		}
		select {
		case <-b.news:
			took.Add(time.Since(began))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(t.cfg.Stall):
			return errors.New("an event does not come")
		}
	}
	t.sample.LatencyMS[name] = took.Latency()
	t.sample.check("awaited_"+name, p.Rounds, b.count())
	return t.place.client.Admin().Webhooks().Delete(ctx, id)
}

// burden makes receivers that do not answer, with everything of the past to send to them.
func (p *webhooksPlan) burden(ctx context.Context, t *trial) (undo func() error, err error) {
	var undos []func() error
	undo = func() (err error) {
		for _, one := range undos {
			err = errors.Join(err, one())
		}
		return err
	}
	hooks := t.place.client.Admin().Webhooks()
	for range p.Dead {
		b, err := openInbox(ctx, silent)
		if err != nil {
			return undo, err
		}
		undos = append(undos, b.close)
		id, err := p.hook(ctx, t, b.url)
		if err != nil {
			return undo, err
		}
		undos = append(undos, func() error { return hooks.Delete(context.WithoutCancel(ctx), id) })
		if _, err := hooks.Replay(ctx, id, api.FromStart, ""); err != nil {
			return undo, err
		}
	}
	return undo, nil
}

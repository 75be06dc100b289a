// Package story is the tenants example: two tenants share one server. Keys open what their roles and namespaces allow, the workers'
// time is shared fairly, limits are each tenant's own, and the audit log tells who did what.
package story

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// Tenants is the story.
var Tenants = stage.Story{Name: "tenants", Tell: tell}

// Render is the work of both tenants: the number of a picture, and whose it is.
const Render flowfabric.Kind[Picture, flowfabric.None] = "render"

// Picture is what is to be rendered.
type Picture struct {
	Tenant string
	Number int
}

// The limits of each tenant.
const (
	maxPayload = 1000 // bytes of an input
	maxSubmits = 50   // a second
)

// house is the story's server with its tenants.
type house struct {
	*stage.Stage
	server    string
	admin     *flowfabric.Client            // for all namespaces
	red, blue string                        // the tenants
	made      []string                      // ids of the keys
	clients   map[string]*flowfabric.Client // by the names of their keys
}

func tell(ctx context.Context, s *stage.Stage) error {
	h := &house{Stage: s, red: s.Name + "-red", blue: s.Name + "-blue", clients: map[string]*flowfabric.Client{}}
	leave, err := h.open(ctx)
	if err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{h.setUp, h.roles, h.share, h.slots, h.money, h.limits, h.audit} {
		if err = chapter(ctx); err != nil {
			break
		}
	}
	return errors.Join(err, h.revoke(context.WithoutCancel(ctx)), leave())
}

// open finds the server, or starts one that asks for keys, and an administrator's client of it.
func (h *house) open(ctx context.Context) (leave func() error, err error) {
	client, err := h.Open(ctx)
	if err != nil {
		return nil, err
	}
	key := h.Key
	if h.Server == "" {
		// An engine in this process may make the first key: access to the store is access to everything.
		first, err := client.Admin().APIKeys().Create(ctx, api.APIKeySettings{Name: h.Name + "-admin", Roles: []string{"admin"}, Namespaces: []string{"*"}})
		if err != nil {
			return nil, err
		}
		key, h.made = first.Secret, append(h.made, first.ID)
	}
	address, stop, err := h.Served(ctx, client, flowfabrichttp.Config{})
	if err != nil {
		return nil, err
	}
	h.server = address
	if h.admin, err = flowfabric.Connect(address, flowfabric.ConnectConfig{APIKey: key}); err != nil {
		return nil, err
	}
	leave = func() error {
		for _, c := range h.clients {
			_ = c.Close(ctx) // it lets connections go
		}
		_ = h.admin.Close(ctx)
		return errors.Join(stop(), client.Close(context.WithoutCancel(ctx)))
	}
	who, err := h.admin.Admin().Whoami(ctx)
	if err == nil && who.Open {
		err = &stage.Misuse{Text: "the server requires no keys, so it has one tenant. Take one that does, with the key of an administrator for * in FF_API_KEY"}
	}
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	return leave, nil
}

// client makes a key and a client that has it, or finds the one that has this name. Refusals are not repeated: the story wants to see them.
func (h *house) client(ctx context.Context, name string, namespaces []string, roles ...string) (*flowfabric.Client, error) {
	if known := h.clients[name]; known != nil {
		return known, nil
	}
	key, err := h.admin.Admin().APIKeys().Create(ctx, api.APIKeySettings{Name: name, Roles: roles, Namespaces: namespaces})
	if err != nil {
		return nil, err
	}
	h.made = append(h.made, key.ID)
	h.Show("key %s of %s for %s: %s", key.ID, name, strings.Join(namespaces, ", "), strings.Join(roles, ", "))
	c, err := flowfabric.Connect(h.server, flowfabric.ConnectConfig{APIKey: key.Secret, Retry: flowfabric.RetryPolicy{MaxRetries: -1}})
	if err == nil {
		h.clients[name] = c
	}
	return c, err
}

// revoke ends the keys of the story, the administrator's own last.
func (h *house) revoke(ctx context.Context) error {
	var problems []error
	for i := len(h.made) - 1; i >= 0; i-- {
		problems = append(problems, h.admin.Admin().APIKeys().Revoke(ctx, h.made[i], ops.RevokeAPIKeyOptions{Force: true}))
	}
	return errors.Join(problems...)
}

// setUp makes the tenants, and a lane that they share by namespace.
func (h *house) setUp(ctx context.Context) error {
	h.Say("An administrator sets up two tenants and a lane that serves them in turn.")
	for _, tenant := range []string{h.red, h.blue} {
		limits := api.NamespaceSettings{Description: "a tenant of the example", MaxPayloadBytes: maxPayload, MaxSubmitPerSecond: maxSubmits}
		if _, err := h.admin.Admin().Namespaces().Put(ctx, tenant, limits); err != nil {
			return err
		}
		h.Show("namespace %s: inputs of %d bytes, %d submits a second", tenant, maxPayload, maxSubmits)
	}
	_, err := h.admin.Lanes().Put(ctx, h.Name, api.LaneSettings{State: api.LanePaused, Fairness: "namespace"})
	return err
}

// roles shows what keys do not open.
func (h *house) roles(ctx context.Context) error {
	h.Say("Each key opens what its roles and its namespace allow.")
	submitter, err := h.client(ctx, "red-app", []string{h.red}, "submit")
	if err != nil {
		return err
	}
	reader, err := h.client(ctx, "red-auditor", []string{h.red}, "read")
	if err != nil {
		return err
	}
	neighbour, err := h.client(ctx, "blue-boss", []string{h.blue}, "read", "submit", "operate")
	if err != nil {
		return err
	}
	run, err := Render.Submit(ctx, submitter, Picture{h.red, 1}, h.options())
	if err != nil {
		return err
	}
	if _, err := reader.Get(ctx, run.ID()); err != nil {
		return err
	}
	h.Show("red-app submits %s, red-auditor sees it", run.ID())
	_, err = Render.Submit(ctx, reader, Picture{h.red, 2}, h.options())
	if err := h.refused(err, "role_required", "red-auditor submits"); err != nil {
		return err
	}
	_, err = neighbour.Cancel(ctx, run.ID(), "mine")
	return h.refused(err, "execution_not_found", "blue-boss cancels red's work")
}

func (h *house) options() flowfabric.SubmitOptions { return flowfabric.SubmitOptions{Lane: h.Name} }

// refused checks that something was refused, and tells it.
func (h *house) refused(err error, code, what string) error {
	if flowfabric.CodeOf(err) != code {
		return fmt.Errorf("%s: want %s: %w", what, code, err)
	}
	h.Show("%s: %s", what, code)
	return nil
}

// share lets one tenant flood the lane before the other comes.
func (h *house) share(ctx context.Context) error {
	h.Say("Red submits nine more pictures, then blue three. One worker, one picture at a time.")
	for _, many := range []struct {
		tenant, app string
		pictures    int
	}{{h.red, "red-crowd", 9}, {h.blue, "blue-crowd", 3}} {
		c, err := h.client(ctx, many.app, []string{many.tenant}, "submit")
		if err != nil {
			return err
		}
		var all []flowfabric.Submission
		for n := range many.pictures {
			all = append(all, Render.Submission(Picture{many.tenant, n + 2}, h.options()))
		}
		if _, err := c.SubmitMany(ctx, all, flowfabric.SubmitManyOptions{Atomic: true}); err != nil {
			return err
		}
	}
	order, err := h.render(ctx, 13)
	if err != nil {
		return err
	}
	h.Show("in this order: %s", strings.Join(order, " "))
	return nil
}

// render works off so many pictures, and tells whose they were.
func (h *house) render(ctx context.Context, pictures int) (order []string, err error) {
	c, err := h.client(ctx, "renderer", []string{h.red, h.blue}, "work")
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	done := make(chan struct{})
	w := flowfabric.NewWorker(c, flowfabric.WorkerConfig{Lanes: []string{h.Name}, Concurrency: 1, Logger: h.Log})
	flowfabric.Handle(w, Render, func(_ context.Context, _ *flowfabric.Task, in Picture) (flowfabric.None, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, in.Tenant[strings.LastIndex(in.Tenant, "-")+1:])
		if len(order) == pictures {
			close(done)
		}
		return flowfabric.None{}, nil
	})
	stop := stage.Start(ctx, w)
	if _, err := h.admin.Lanes().Resume(ctx, h.Name); err != nil {
		return nil, errors.Join(err, stop())
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return order, stop()
}

// limits runs one tenant into its limits; the other does not notice.
func (h *house) limits(ctx context.Context) error {
	h.Say("Red runs into its limits. Blue does not notice.")
	red, err := h.client(ctx, "red-flood", []string{h.red}, "submit")
	if err != nil {
		return err
	}
	_, err = red.Submit(ctx, flowfabric.Submission{Kind: string(Render), Input: flowfabric.Text(strings.Repeat("x", maxPayload+1)), SubmitOptions: h.options()})
	if err := h.refused(err, "payload_too_large", "red submits an input of 1001 bytes"); err != nil {
		return err
	}
	accepted, err := h.flood(ctx, red)
	if err := h.refused(err, "rate_limited", fmt.Sprintf("red submits %d more at once, and then", accepted)); err != nil {
		return err
	}
	blue, err := h.client(ctx, "blue-app", []string{h.blue}, "submit")
	if err != nil {
		return err
	}
	run, err := Render.Submit(ctx, blue, Picture{h.blue, 99}, h.options())
	if err != nil {
		return err
	}
	h.Show("blue submits %s", run.ID())
	return nil
}

// flood submits many at once until some are refused. Between two floods a second may pass.
func (h *house) flood(ctx context.Context, c *flowfabric.Client) (accepted int, err error) {
	for range 10 {
		answers := make(chan error, 2*maxSubmits)
		for range cap(answers) {
			go func() {
				_, err := c.Submit(ctx, flowfabric.Submission{Kind: "flood", SubmitOptions: h.options()})
				answers <- err
			}()
		}
		for range cap(answers) {
			if refusal := <-answers; refusal != nil {
				err = refusal
			} else {
				accepted++
			}
		}
		if err != nil {
			return accepted, err
		}
	}
	return accepted, errors.New("a tenant may submit as fast as it likes")
}

// audit reads who did what in red's namespace.
func (h *house) audit(ctx context.Context) error {
	h.Say("The audit log tells what administrators did and who was refused. Its rows are chained by hashes.")
	for _, namespace := range []string{h.red, h.blue} {
		for row, err := range h.admin.Admin().Audit(ctx, ops.AuditFilter{Namespace: namespace}) {
			if err != nil {
				return err
			}
			h.Show("%s %s %s: %s", namespace, row.Principal, row.Action, row.Outcome)
		}
		check, err := h.admin.Admin().VerifyAudit(ctx, namespace)
		if err != nil {
			return err
		}
		h.Show("%s: %d rows, the chain holds: %t", namespace, check.Rows, check.OK)
	}
	return nil
}

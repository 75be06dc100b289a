package server

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveAdmin() {
	handle(s, wire.Whoami, s.whoami)
	handle(s, wire.GetInfo, s.info)
	handle(s, wire.GetSettings, s.settings)
	handle(s, wire.RunDoctor, s.doctor)
	handle(s, wire.MakeBackup, s.backup)
	handle(s, wire.DrainServer, s.drainServer)
	handle(s, wire.VerifyAudit, s.verifyAudit)
}

// whoami returns the identity of the caller (U111), with the roles that admitted it.
func (s *Server) whoami(ctx context.Context, x *exchange, _ *wire.None) (answer, error) {
	who := x.caller
	namespaces := who.Namespaces
	if namespaces == nil {
		namespaces = []string{allNamespaces}
	}
	return shows(api.Principal{
		Principal: who.Name, KeyID: who.KeyID, Namespaces: namespaces, Roles: who.roles.Names(), Open: who.open,
	}), nil
}

// info returns version, store, features and limits (U112): in addition to those of the engine the server's own.
func (s *Server) info(ctx context.Context, x *exchange, r *wire.None) (answer, error) {
	info, err := ask(ctx, s, x.by, wire.GetInfo, r)
	if err != nil {
		return answer{}, err
	}
	info.Version, info.Commit = s.cfg.Version, s.cfg.Commit
	limits := map[string]int64{
		"max_wait_ms": s.cfg.MaxWait.Milliseconds(), "max_readers": int64(s.cfg.MaxReaders), "max_readers_per_key": int64(s.cfg.MaxReadersPerKey), "max_claims": int64(s.cfg.MaxClaims),
		"max_body_bytes": largestBody, "max_head_bytes": headLimit,
	}
	maps.Copy(limits, info.Limits)
	info.Limits = limits
	return shows(info), nil
}

// settings returns the effective settings (U113): those of the process, or of the engine if the process has none.
func (s *Server) settings(ctx context.Context, x *exchange, r *wire.None) (answer, error) {
	if s.cfg.Settings == nil {
		known, err := ask(ctx, s, x.by, wire.GetSettings, r)
		return shows(known), err
	}
	all := api.Settings{Settings: []api.Setting{}}
	for _, setting := range s.cfg.Settings {
		all.Settings = append(all.Settings, api.Setting(setting))
	}
	return shows(all), nil
}

// doctor checks store, work and server (U113).
func (s *Server) doctor(ctx context.Context, x *exchange, r *wire.None) (answer, error) {
	found, err := ask(ctx, s, x.by, wire.RunDoctor, r)
	if err != nil {
		return answer{}, err
	}
	return shows(api.NewHealthReport(append(found.Checks, s.ownChecks()...)...)), nil
}

// ownChecks is what the server says of itself.
func (s *Server) ownChecks() []api.Check {
	credentials := api.Check{Name: "credentials", State: api.CheckOK, Detail: "callers need credentials"}
	switch {
	case s.exposed():
		credentials.State, credentials.Detail, credentials.Hint = api.CheckWarn, exposedDetail, "create an admin key: from then on everybody needs a key"
	case s.open.now():
		credentials.State, credentials.Detail, credentials.Hint = api.CheckWarn, "everybody on this host may do everything", "create an admin key"
	}
	stopping := api.Check{Name: "stopping", State: api.CheckOK, Detail: "the server takes work"}
	if s.drains() {
		stopping = api.Check{Name: "stopping", State: api.CheckWarn, Detail: "the server is stopping and hands out no work", Hint: "use another server"}
	}
	all := []api.Check{credentials, stopping}
	if s.cfg.Checks != nil {
		all = append(all, s.cfg.Checks()...)
	}
	return all
}

// backup delivers a consistent copy of the store (U113).
func (s *Server) backup(context.Context, *exchange, *wire.None) (answer, error) {
	return answer{stream: func(ctx context.Context, x *exchange) {
		header := x.w.Header()
		header.Set("Content-Type", wire.ContentBytes)
		header.Set("Content-Disposition", `attachment; filename="flowfabric.db"`)
		switch err := s.on.Do(ctx, x.by, wire.MakeBackup.Operation, &wire.None{}, &wire.Sink{To: x.w}); {
		case err == nil:
		case x.w.status == 0:
			header.Del("Content-Disposition")
			s.writeProblem(x, err)
		default:
			s.cutOff(x, err)
		}
	}}, nil
}

// drainServer stops what waits here and makes the server not ready (U113).
func (s *Server) drainServer(context.Context, *exchange, *wire.None) (answer, error) {
	s.Drain()
	return shows(wire.ServerDrain{Draining: true}), nil
}

// verifyAudit recomputes a chain of the audit log (U131).
func (s *Server) verifyAudit(ctx context.Context, x *exchange, r *wire.VerifyAuditRequest) (answer, error) {
	by := x.by
	switch {
	case r.Shared && !x.caller.everywhere:
		return answer{}, refuse("role_required", "this chain is for keys of all namespaces").at("query.shared").hint("leave it out")
	case r.Shared:
		by.Namespaces = nil
	case x.caller.Namespace == "":
		return answer{}, namespaceRequired()
	}
	check, err := ask(ctx, s, by, wire.VerifyAudit, r)
	return shows(check), err
}

// recordWithin bounds how long a refusal waits for its row in the audit log.
const recordWithin = 5 * time.Second

// recordRefusal writes into the audit log what a valid key was refused for lack of a right (U131). Who hangs up does not escape it.
func (s *Server) recordRefusal(ctx context.Context, x *exchange, code string) {
	if x.caller.key == nil || x.route == nil || code != "role_required" && code != "namespace_forbidden" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	entity, id := x.route.entity(x.r)
	refusal := service.Refusal{Action: wire.AuditAction(x.route.Operation), Entity: entity, EntityID: id, Code: code}
	if err := s.on.RecordRefusal(ctx, x.acting(), refusal); err != nil {
		s.notes.Error("a refusal is not in the audit log", "request_id", x.id, "code", code, "error", err)
	}
}

// entities are what the parameters of paths name.
var entities = []struct{ section, parameter, entity string }{
	{"/v1/executions", "id", "execution"},
	{"/v1/bulk", "id", "bulk"},
	{"/v1/api-keys", "id", "api_key"},
	{"/v1/lanes", "lane", "lane"},
	{"/v1/workers", "instance", "worker"},
	{"/v1/namespaces", "name", "namespace"},
}

// entity is what a request is about; "" when it is about nothing in particular.
func (r *route) entity(request *http.Request) (entity, id string) {
	for _, e := range entities {
		if strings.HasPrefix(r.Path, e.section) {
			return e.entity, request.PathValue(e.parameter)
		}
	}
	return "", ""
}

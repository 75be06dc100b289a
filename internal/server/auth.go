package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// caller is who makes a request, and what it may do.
type caller struct {
	service.Caller
	roles      wire.Role
	key        *Key // what its API key or its login allows; nil when it has neither
	everywhere bool // it may act in all namespaces
	anonymous  bool // it showed no credential, and needs none here
	open       bool // any caller: the server requires no credentials
}

// devPrincipal is every caller in open mode (U123).
const (
	devPrincipal     = "dev"
	defaultNamespace = "default"
	allNamespaces    = "*"
)

// authenticate finds out who calls.
func (s *Server) authenticate(ctx context.Context, x *exchange) (caller, error) {
	if x.route.byToken() {
		return s.authenticateToken(x)
	}
	if all, err := s.isOpen(ctx, x.route); all || err != nil {
		return openCaller(), cmp.Or(err, s.checkOrigin(x))
	}
	open := x.route.Roles&wire.Open != 0 || s.cfg.MetricsOpen && x.route.ID == wire.GetMetrics.ID
	if _, given := bearer(x.r); !given && open && s.cfg.Login == nil {
		return caller{anonymous: true}, nil
	}
	who, err := s.verify(ctx, x)
	switch {
	case err == nil:
		return who, nil
	case open: // to all: to those with an old key too, and while the store cannot say whose key it is
		return caller{anonymous: true}, nil
	default:
		return caller{}, err
	}
}

// verify authenticates the caller, and counts failures by address (U129). From an address with too many failures, which many may
// share, valid keys are still accepted, and refusals have no details any more. A login is not even tried then, because a password
// can be guessed.
func (s *Server) verify(ctx context.Context, x *exchange) (caller, error) {
	tooMany := refuse("rate_limited", "too many requests with wrong credentials came from this address").after(failureSpan)
	if s.cfg.Login != nil && s.failures.blocked(x.address) {
		s.metrics.rejected("rate")
		return caller{}, tooMany
	}
	var who caller
	blocked, err := s.failures.try(ctx, x.address, func() (err error) {
		who, err = s.lookUp(ctx, x.r)
		return err
	})
	switch {
	case err == nil || !errors.Is(err, api.ErrUnauthenticated):
		return who, err
	case api.CodeOf(err) == "missing_credentials": // nothing was tried
	case blocked:
		s.metrics.rejected("rate")
		return caller{}, tooMany
	default:
		s.failures.add(x.address)
	}
	s.metrics.rejected("auth")
	s.metrics.authFailed(api.CodeOf(err))
	return caller{}, err
}

// lookUp determines the caller of a request, by the login if there is one, else by its key.
func (s *Server) lookUp(ctx context.Context, r *http.Request) (caller, error) {
	if s.cfg.Login != nil {
		return s.logIn(r.WithContext(ctx))
	}
	secret, given := bearer(r)
	if !given {
		return caller{}, noKey()
	}
	key, err := s.on.Authenticate(ctx, secret)
	if err != nil {
		return caller{}, err
	}
	return callerOf(keyOf(key)), nil
}

func noKey() error {
	return refuse("missing_credentials", "the request has no API key").at("header.Authorization").hint("send one with `Authorization: Bearer`")
}

// callerOf is a caller who may do what the key says.
func callerOf(key *Key) caller {
	who := caller{
		Caller: service.Caller{Name: key.Name, KeyID: key.ID}, key: key,
		everywhere: slices.Contains(key.Namespaces, allNamespaces),
	}
	for _, name := range key.Roles {
		role, _ := wire.RoleNamed(name) // a role that is unknown to this server permits nothing
		who.roles |= role
	}
	who.Operator, who.Admin = who.roles&(wire.Operate|wire.Admin) != 0, who.roles&wire.Admin != 0
	if !who.everywhere {
		who.Namespaces = slices.Clone(key.Namespaces)
		if len(key.Namespaces) == 1 {
			who.Namespace = key.Namespaces[0]
		}
	}
	return who
}

// openCaller is every caller in open mode.
func openCaller() caller {
	return caller{
		Caller: service.Caller{Name: devPrincipal, Namespace: defaultNamespace, Namespaces: []string{defaultNamespace}, Operator: true, Admin: true},
		roles:  wire.Read | wire.Submit | wire.Work | wire.Operate | wire.Admin, everywhere: true, open: true,
	}
}

// bearer returns the API key of a request.
func bearer(r *http.Request) (secret string, given bool) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(secret), strings.EqualFold(scheme, "Bearer") && secret != ""
}

// chooseNamespace narrows what the caller sees to the namespace that it names, and refuses a call that needs one and has none (U121).
func (x *exchange) chooseNamespace() error {
	named := x.r.Header.Get(wire.HeaderNamespace)
	who := &x.caller
	switch {
	case who.anonymous:
		return nil
	case named != "" && (who.everywhere && who.key != nil || slices.Contains(who.Namespaces, named)):
		who.Namespace, who.Namespaces = named, []string{named}
	case named != "":
		return refuse("namespace_forbidden", "the caller has no access to this namespace").at("header." + wire.HeaderNamespace)
	case who.Namespace == "" && needsNamespace(x.route.ID):
		return namespaceRequired()
	}
	return nil
}

func namespaceRequired() *refusal {
	return refuse("namespace_required", "the key is for several namespaces: say which one is meant").
		at("header." + wire.HeaderNamespace).hint("name it with `FlowFabric-Namespace`")
}

// needsNamespace reports whether an operation makes something that belongs to one namespace.
func needsNamespace(id string) bool {
	return id == wire.SubmitExecution.ID || id == wire.SubmitExecutions.ID
}

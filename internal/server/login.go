package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// logIn asks the login in place of API keys (U147). What goes wrong in it is for its own log: the caller learns only that the
// login is not valid, unless the login says more with an Error of the table.
func (s *Server) logIn(r *http.Request) (caller, error) {
	key, err := s.cfg.Login(r)
	var refusal *api.Error
	switch {
	case errors.As(err, &refusal):
		return caller{}, err
	case err != nil:
		s.log.Debug("a login is not valid", "error", err)
		return caller{}, refuse("invalid_credentials", "the login is not valid")
	case key == nil:
		return caller{}, refuse("missing_credentials", "no user is logged in")
	}
	if err := key.check(); err != nil {
		return caller{}, fmt.Errorf("the login gave a principal that cannot be: %w", err)
	}
	if err := s.foreign.Check(r); err != nil {
		return caller{}, refuse("origin_forbidden", "a page of another origin may not change anything here").at("header.Origin")
	}
	return callerOf(key), nil
}

// check finds what makes a principal of a login useless.
func (k *Key) check() error {
	var problems []error
	if k.Name == "" {
		problems = append(problems, errors.New("it has no name"))
	}
	if len(k.Namespaces) == 0 {
		problems = append(problems, errors.New("it has no namespace"))
	}
	for _, name := range k.Roles {
		if _, known := wire.RoleNamed(name); !known {
			problems = append(problems, fmt.Errorf("no role is called %q", name))
		}
	}
	return errors.Join(problems...)
}

// guard refuses changes requested by pages of other origins: a browser sends its cookies with them, and a login may be based on
// those. Programs other than browsers send no origin, and pass.
func (cfg Config) guard(own string) (*http.CrossOriginProtection, error) {
	guard := http.NewCrossOriginProtection()
	for _, origin := range append([]string{own}, cfg.CORSOrigins...) {
		if origin == "" {
			continue
		}
		if err := guard.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return guard, nil
}

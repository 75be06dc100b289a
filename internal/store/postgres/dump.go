package postgres

import (
	"fmt"

	"github.com/flowfabric/flowfabric/internal/store"
)

var _ store.Dumper = (*Store)(nil)

// DumpLine returns the command that copies the database, without the password: command lines are visible to all users of a machine.
func (s *Store) DumpLine() string {
	config, err := s.directConfig()
	if err != nil { // cannot happen: the store could not have been opened
		return "pg_dump --format=custom"
	}
	return fmt.Sprintf("pg_dump --format=custom --file=flowfabric.dump --host=%s --port=%d --username=%s %s", config.Host, config.Port, config.User, config.Database)
}

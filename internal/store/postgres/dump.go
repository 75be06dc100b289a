package postgres

import (
	"fmt"

	"github.com/flowfabric/flowfabric/internal/store"
)

var _ store.Dumper = (*Store)(nil)

// DumpLine is the command that copies the database. The password stays out of it: commands are seen by everybody on a machine.
func (s *Store) DumpLine() string {
	config, err := s.directConfig()
	if err != nil { // the store could not have been opened
		return "pg_dump --format=custom"
	}
	return fmt.Sprintf("pg_dump --format=custom --file=flowfabric.dump --host=%s --port=%d --username=%s %s", config.Host, config.Port, config.User, config.Database)
}

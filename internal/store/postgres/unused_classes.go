package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/store"
)

// UnusedClasses returns the classes that no execution has. It reads a whole table, on a connection of its own, for as long as ctx allows.
func (s *Store) UnusedClasses(ctx context.Context) (ids []int32, err error) {
	err = s.apart(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, s.cold["unused_classes"])
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int32])
		return err
	})
	return ids, fault(err)
}

func retiredColumns(classes []store.RetiredClass) [][]byte {
	id, since := ints(len(classes)), bigints(len(classes))
	for _, class := range classes {
		id.int(class.ID)
		since.time(class.Since)
	}
	return arguments(id, since)
}

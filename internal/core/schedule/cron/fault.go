package cron

import "github.com/flowfabric/flowfabric/internal/core/base"

// DetailPosition is the detail of a refusal that holds the number of bytes before the place at fault.
const DetailPosition = "position"

// fault is the refusal of a text: invalid_schedule.
func fault(position int, format string, args ...any) *base.Error {
	return base.Errorf(base.CodeInvalidSchedule, format, args...).With(DetailPosition, position)
}

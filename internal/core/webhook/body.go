package webhook

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// KindTest is the kind of a request that an operator asks for to try an endpoint.
const KindTest = "webhook.test"

// Body returns the document of a request: type, timestamp and data, in this order. Envelope is a JSON document and is copied as it is; at is the
// time of the event and does not change between attempts.
func Body(kind string, at time.Time, envelope []byte) []byte {
	o := base.NewObject(len(envelope) + len(kind) + 64)
	o.Str("type", kind)
	o.Moment("timestamp", base.TimeOf(at))
	o.Raw("data", envelope)
	return o.Done()
}

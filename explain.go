package flowfabric

import (
	"time"
)

// ExplainOptions are the options of Explain.
type ExplainOptions struct {
	// Wait makes the call wait up to this long for a change of status, reason or causes; 0: it returns at once; more than a
	// minute counts as one minute.
	Wait time.Duration
}

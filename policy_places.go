package flowfabric

import (
	"errors"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/service"
)

// Places of refused fields of a policy in a submission, as the service has them for the nodes of a graph (U11).

// asGiven names the place in the submission of a field that the rules refuse.
func (o *SubmitOptions) asGiven(err error) error { return placed(err, o.placeOf) }

// placed gives a refusal another field.
func placed(err error, place func(code core.Code, field string) string) error {
	var refusal *Error
	if !errors.As(err, &refusal) {
		return err
	}
	field := place(core.Code(refusal.Code), refusal.Field)
	if field == refusal.Field {
		return err
	}
	named := *refusal
	named.Field = field
	return &named
}

func (o *SubmitOptions) placeOf(code core.Code, field string) string {
	path, ofPolicy := service.PolicyPath(code, field)
	if !ofPolicy {
		return field
	}
	short := o.short()
	for _, form := range shortForms {
		if rest, ok := strings.CutPrefix(path, form.path); ok && form.given(&short) && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return form.field + rest
		}
	}
	if path == "fairness_key" && o.Policy != nil && o.Policy.keyAside {
		return path
	}
	return "policy." + path
}

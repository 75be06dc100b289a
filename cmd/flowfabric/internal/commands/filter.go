package commands

import (
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/internal/jsonx"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// filterFlags are the filter of lists as flags (U34), generated from the API's table: --public-state for public_state.
type filterFlags struct {
	fs     *pflag.FlagSet
	values map[string]*[]string // by query parameter
}

const tagPrefix = "tag." // prefix of query parameters that name a tag

func newFilterFlags(fs *pflag.FlagSet) *filterFlags {
	f := &filterFlags{fs: fs, values: map[string]*[]string{}}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[wire.FilterFields]()) {
		name, help := field.Tag.Get("query"), field.Tag.Get("doc")
		flag := strings.ReplaceAll(strings.TrimSuffix(name, "."), "_", "-")
		switch {
		case name == tagPrefix:
			help = "key=value, or key for any value; may be repeated"
		case field.Type == reflect.TypeFor[wire.Time]():
			help += " RFC 3339, a date, or how long ago: 2h."
		}
		values := new([]string)
		fs.StringArrayVar(values, flag, nil, help)
		f.values[name] = values
	}
	return f
}

// filter returns the filter from the flags.
func (f *filterFlags) filter() (ops.Filter, error) { return filterOf(f.conditions()) }

// query returns the filter as query parameters.
func (f *filterFlags) query() ([]string, error) { return queryOf(f.conditions()) }

func (f *filterFlags) conditions() []condition {
	var terms []condition
	for name, values := range f.values {
		for _, value := range *values {
			if name == tagPrefix {
				key, value, found := strings.Cut(value, "=")
				terms = append(terms, condition{tagPrefix + key, value, found})
				continue
			}
			terms = append(terms, condition{name, value, true})
		}
	}
	return terms
}

// condition is one condition of a filter: a query parameter.
type condition struct {
	name, value string
	hasValue    bool
}

// where parses status=failed,lane=x. A name can be repeated for alternatives; a comma inside a value is escaped with a backslash.
func where(text string) (ops.Filter, error) {
	var terms []condition
	for part := range strings.SplitSeq(strings.ReplaceAll(text, `\,`, "\x00"), ",") {
		name, value, found := strings.Cut(strings.ReplaceAll(part, "\x00", `\,`), "=")
		name = strings.TrimSpace(name)
		if !strings.HasPrefix(name, tagPrefix) && !slices.Contains(filterNames(), name) {
			hint := "known: " + strings.Join(filterNames(), ", ")
			if near := jsonx.Nearest(name, filterNames()); near != "" {
				hint = "did you mean " + near + "?"
			}
			return ops.Filter{}, show.Invalid("--where", hint, "unknown filter %q", name)
		}
		if !found && !strings.HasPrefix(name, tagPrefix) {
			return ops.Filter{}, show.Invalid("--where", "write "+name+"=value", "%q has no value", name)
		}
		terms = append(terms, condition{name, value, found})
	}
	return filterOf(terms)
}

// filterNames are the query parameters of the filter.
func filterNames() []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[wire.FilterFields]()) {
		names = append(names, field.Tag.Get("query"))
	}
	return names
}

// filterOf parses the conditions as the server does.
func filterOf(terms []condition) (ops.Filter, error) {
	query, err := queryOf(terms)
	if err != nil {
		return ops.Filter{}, err
	}
	var fields struct{ wire.FilterFields }
	if err := wire.DecodeHead(wire.Incoming{Query: strings.Join(query, "&")}, &fields); err != nil {
		return ops.Filter{}, refusalOf(err)
	}
	return publicFilter(fields.FilterFields), nil
}

// queryOf formats the conditions as query parameters; several values of one are separated by commas.
func queryOf(terms []condition) ([]string, error) {
	joined := map[string]string{}
	var query []string
	for _, t := range terms {
		switch {
		case strings.HasPrefix(t.name, tagPrefix) && !t.hasValue:
			query = append(query, url.QueryEscape(t.name))
		case strings.HasSuffix(t.name, "_from") || strings.HasSuffix(t.name, "_to"):
			at, err := moment("--"+strings.ReplaceAll(t.name, "_", "-"), t.value, ago)
			if err != nil {
				return nil, err
			}
			joined[t.name] = at.UTC().Format(time.RFC3339Nano)
		case joined[t.name] != "":
			joined[t.name] += "," + t.value
		default:
			joined[t.name] = t.value
		}
	}
	for name, value := range joined {
		query = append(query, url.QueryEscape(name)+"="+url.QueryEscape(value))
	}
	return query, nil
}

// refusalOf returns the first error of a request that cannot be parsed.
func refusalOf(err error) error {
	var fault *wire.Error
	if !errors.As(err, &fault) {
		return err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(fault.Field, "query."), "_", "-")
	return &flowfabric.Error{Code: fault.Code, Class: "invalid", Field: name, Message: fault.Detail, Hint: fault.Hint}
}

func publicFilter(f wire.FilterFields) ops.Filter {
	filter := ops.Filter{
		PublicState: f.PublicState, Reason: f.Reason, Next: f.Next, Kind: f.Kind, Lane: f.Lane, InstanceID: f.WorkerInstanceID,
		Creator: f.Creator, IdempotencyKey: f.IdempotencyKey,
		CreatedFrom: f.CreatedFrom.Time, CreatedTo: f.CreatedTo.Time, CompletedFrom: f.CompletedFrom.Time, CompletedTo: f.CompletedTo.Time,
		UpdatedFrom: f.UpdatedFrom.Time, UpdatedTo: f.UpdatedTo.Time, PriorityMin: f.PriorityMin, PriorityMax: f.PriorityMax, Query: f.Query,
	}
	for _, status := range f.Status {
		filter.Status = append(filter.Status, flowfabric.Status(status))
	}
	for _, id := range f.FlowID {
		filter.FlowID = append(filter.FlowID, flowfabric.ID(id))
	}
	for _, id := range f.ParentID {
		filter.ParentID = append(filter.ParentID, flowfabric.ID(id))
	}
	for key, value := range f.Tags {
		if value == nil {
			filter.HasTags = append(filter.HasTags, key)
			continue
		}
		if filter.Tags == nil {
			filter.Tags = map[string]string{}
		}
		filter.Tags[key] = *value
	}
	return filter
}

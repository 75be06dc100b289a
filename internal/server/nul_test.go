package server_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// queriesOf lists the query parameters of a request.
func queriesOf(request reflect.Type) (names []string) {
	for i := range request.NumField() {
		field := request.Field(i)
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			names = append(names, queriesOf(field.Type)...)
		}
		if name, _, _ := strings.Cut(field.Tag.Get("query"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// No parameter of a list makes a server fail, whatever text it has: a store that cannot compare with it is not asked.
func TestU11_no_text_in_a_parameter_of_a_list_is_an_internal_error(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/executions", `{"kind":"k"}`).wants(t, 201)
		asked := 0
		for _, op := range wire.Operations() {
			if op.Method != http.MethodGet || op.Reserved || op.Streams || op.Waits || strings.Contains(op.Path, "{") || op.Request == nil || op.Request.Kind() != reflect.Struct {
				continue
			}
			for _, name := range append(queriesOf(op.Request), "tag.a") {
				for _, text := range []string{"%00", "a%00b", "%FF", "%ED%A0%80"} {
					asked++
					if got := w.get(t, op.Path+"?"+name+"="+text); got.status >= http.StatusInternalServerError {
						t.Errorf("%s?%s=%s: %d %s", op.Path, name, text, got.status, got.body)
					}
				}
			}
		}
		if asked < 200 {
			t.Errorf("only %d questions were asked", asked)
		}
		for _, name := range []string{"lane", "kind"} {
			w.get(t, "/v1/executions?"+name+"=%00").refuses(t, 400, "invalid_filter")
			w.get(t, "/v1/executions/count?"+name+"=%00").refuses(t, 400, "invalid_filter")
		}
	})
}

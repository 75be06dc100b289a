package wire

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestU77_items_are_read_one_after_the_other_as_they_are_as_a_whole(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		var given Items[api.WorkAnswerFields]
		drawAnswer(t, reflect.ValueOf(&given).Elem())
		text, err := Marshal(&given)
		if err != nil {
			t.Fatal(err)
		}
		var got []Item[api.WorkAnswerFields]
		n, err := ReadItems(text, func(i int, item *Item[api.WorkAnswerFields]) {
			if i != len(got) {
				t.Fatalf("item %d comes after %d", i, len(got))
			}
			got = append(got, *item)
		})
		if err != nil || n != len(given.Items) || len(got) > 0 && !reflect.DeepEqual(got, given.Items) {
			t.Fatalf("%d items %+v of %s, %v", n, got, text, err)
		}
	})
}

func TestU4_a_list_that_is_none_or_breaks_off_is_an_error(t *testing.T) {
	t.Parallel()
	for text, seen := range map[string]int{
		`{"items":{}}`: 0, `{"items":[{"index":0,"ok":true},`: 1, `{"items":[{"index":0,"ok":true},3]}`: 2, `[]`: 0, ``: 0,
	} {
		n, err := ReadItems([]byte(text), func(int, *Item[submitItem]) {})
		if err == nil || n > seen {
			t.Errorf("%s: %d items, %v", text, n, err)
		}
	}
	if n, err := ReadItems([]byte(`{"items":null,"new":1}`), func(int, *Item[submitItem]) {}); n != 0 || err != nil {
		t.Errorf("null: %d items, %v", n, err)
	}
}

package txn

import (
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// SetIn sets an entry of a map, which is made if it is nil.
func SetIn[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Contains reports whether a list has a text.
func Contains(list []string, text string) bool {
	for _, item := range list {
		if item == text {
			return true
		}
	}
	return false
}

// AppendNew adds a text to a list that does not have it. An empty text is not added.
func AppendNew(list []string, text string) []string {
	if text == "" || Contains(list, text) {
		return list
	}
	return append(list, text)
}

// Once removes the duplicates of a list and keeps the first of each. Unlike appendNew it does not search the whole list for each item.
func Once[T comparable](list []T) []T {
	seen := make(map[T]bool, len(list))
	return slices.DeleteFunc(list, func(t T) bool {
		before := seen[t]
		seen[t] = true
		return before
	})
}

// Narrow returns the wanted namespaces that are allowed. A nil list stands for all.
func Narrow(wanted, allowed []string) []string {
	switch {
	case wanted == nil:
		return allowed
	case allowed == nil:
		return wanted
	}
	kept := []string{}
	for _, name := range wanted {
		if Contains(allowed, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// Earlier returns the earlier of two times; one that is absent does not count.
func Earlier(a, b base.Time) base.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Sooner returns the earlier of two times.
func Sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Ptr returns a pointer to a value.
func Ptr[T any](v T) *T { return &v }

// OrNil returns a list, or nil if it is empty.
func OrNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

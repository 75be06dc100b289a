package flowfabric

// embeddedExecutions has the reads of executions whose values are no values of package api yet.
type embeddedExecutions struct{ client *embedded }

// pageOf shows a part of a list.
func pageOf[From, To any](all []From, show func(From) To, next string) Page[To] {
	items := make([]To, len(all))
	for i, one := range all {
		items[i] = show(one)
	}
	return Page[To]{Items: items, NextCursor: next}
}

func texts[T ~string](values []T) []string {
	if values == nil {
		return nil
	}
	plain := make([]string, len(values))
	for i, v := range values {
		plain[i] = string(v)
	}
	return plain
}

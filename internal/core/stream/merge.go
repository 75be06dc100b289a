package stream

// lane is one mode of a read.
//
// Durable and summary frames are read up to the first one that is retained, even beyond the bound of the query, so that truncated is the same whether
// chunks were deleted or not.
type lane struct {
	window    Window
	after, to int64    // the bounds of the query
	last      int64    // seq of the last frame of the mode
	rows      [][]byte // not opened yet
	reader    frameReader
	open      bool  // the reader is in a chunk
	frame     Frame // the next frame
	has       bool  // there is one
	ended     bool  // nothing is left to be found
	reached   int64 // seq of the last frame of the chunk in the reader; before the first chunk, the seq after which it is looked for
	truncated int64 // the last frame below this seq is not retained; 0: all are
}

// needsChunks reports whether the lane needs chunks to go on.
func (l *lane) needsChunks() bool { return !l.has && !l.ended }

// end ends a lane for which no chunk is stored: those that were there when the head was read have been deleted.
func (l *lane) end() {
	l.drop(l.last)
	l.ended = true
}

// drop notes that a frame is not retained.
func (l *lane) drop(seq int64) {
	if seq > l.after {
		l.truncated = max(l.truncated, seq+1)
	}
}

// fill finds the next frame that is retained, as far as there are chunks. It may lie beyond the bound of the query.
func (l *lane) fill() error {
	for !l.has && !l.ended {
		switch {
		case !l.open && len(l.rows) == 0:
			return nil
		case !l.open:
			if err := l.openNext(); err != nil {
				return err
			}
		case l.reader.next(&l.frame):
			if l.window.retains(&l.reader) {
				l.has = l.frame.Seq > l.after
			} else {
				l.drop(l.frame.Seq)
			}
		default:
			if err := l.reader.err(); err != nil {
				return err
			}
			l.open = false
			l.ended = l.reached >= min(l.to, l.last)
		}
	}
	return nil
}

// openNext opens the next chunk, or passes over it if nothing of it is retained.
func (l *lane) openNext() error {
	if err := l.reader.open(l.rows[0]); err != nil {
		return err
	}
	l.rows = l.rows[1:]
	s := &l.reader.extent
	if s.Mode != l.window.Mode || s.LastSeq <= l.reached {
		return unreadable("chunk of a stream, which was not to be read,")
	}
	if s.Prev > l.reached {
		l.drop(s.Prev)
	}
	l.reached = s.LastSeq
	l.open = !l.window.Gone(s)
	if !l.open {
		l.drop(s.LastSeq)
		l.ended = l.reached >= l.last || l.window.Mode == BestEffort && l.reached >= l.to
	}
	return nil
}

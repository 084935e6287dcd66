package shardrouter

// Texts keeps what statements say.
type Texts struct{ t *texts }

func NewTexts(several bool) Texts { return Texts{newTexts(several)} }

// Agrees reports whether what the texts say of a statement is what is read out
// of it.
func (t Texts) Agrees(query string) bool {
	return t.t.traitsOf(query) == traitsOf(query, t.t.several)
}

// Kept counts the statements that are kept, and their bytes.
func (t Texts) Kept() (n, bytes int) {
	for i := range t.t.slots {
		if kept := t.t.slots[i].kept.Load(); kept != nil {
			n, bytes = n+1, bytes+len(kept.query)
		}
	}
	return n, bytes
}

const (
	TextSlots   = textSlots
	LongestText = longestText
)

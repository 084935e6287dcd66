package shardrouter

// MarkerProof is a proof by markers.
type MarkerProof struct{ p markerProof }

// NewMarkerProof has found sets before.
func NewMarkerProof(sets ...[]string) *MarkerProof { return &MarkerProof{markerProof{Sets: sets}} }

// Sets sorts shards by the markers that they show: of each shard that was asked,
// those of the others.
func (m *MarkerProof) Sets(ring []string, shows map[string]map[string]bool) (sets [][]string, gain bool) {
	sets = markerSets(ring, &m.p, shows)
	return sets, gains(&m.p, sets)
}

// Both is what two looks have found.
func Both(a, b map[string]map[string]bool) map[string]map[string]bool { return shown(a).and(b) }

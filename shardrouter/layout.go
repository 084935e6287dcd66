package shardrouter

// layout is which shards there are at one time, and what belongs to them. It is
// immutable, and goes with a request from its beginning to its lease, whatever
// comes after it.
type layout struct {
	shards  []Shard // in rotation order; without their accounts
	members map[string]*member
	groups  map[string]*group
	// coming has the pools of shards that are probed and not used yet.
	coming map[string]*pool
}

// member is one shard of a layout.
type member struct {
	Shard
	pool *pool
}

// group is what the shards of a group share.
type group struct {
	ring     []Shard // in rotation order
	news     *news
	passages *passages
}

// newLayout returns the layout of shards, for which pools has one each. What
// the groups of an older layout share goes on; before may be nil.
func newLayout(shards []Shard, pools map[string]*pool, before *layout) *layout {
	l := &layout{members: make(map[string]*member), groups: make(map[string]*group)}
	for _, s := range shards {
		g := l.groups[s.Group]
		if g == nil {
			g = before.sharedBy(s.Group)
			l.groups[s.Group] = g
		}
		s = s.withoutAccount()
		g.ring = append(g.ring, s)
		l.shards = append(l.shards, s)
		l.members[s.Name] = &member{s, pools[s.Name]}
	}
	return l
}

// sharedBy returns a group without shards that has what the group of that name
// shares, or something new.
func (l *layout) sharedBy(name string) *group {
	if l != nil && l.groups[name] != nil {
		return &group{news: l.groups[name].news, passages: l.groups[name].passages}
	}
	return &group{news: newNews(), passages: new(passages)}
}

// pool returns the pool of a shard; nil for an unknown one.
func (l *layout) pool(shard string) *pool {
	if m := l.members[shard]; m != nil {
		return m.pool
	}
	return nil
}

// withComing is l with pools to be probed besides.
func (l *layout) withComing(pools map[string]*pool) *layout {
	next := *l
	next.coming = pools
	return &next
}

// probed returns the pool by which a shard is probed; nil for an unknown one.
func (l *layout) probed(shard string) *pool {
	if p := l.coming[shard]; p != nil {
		return p
	}
	return l.pool(shard)
}

// adopt tells the pools what the layout says of them.
func (l *layout) adopt() {
	for _, m := range l.members {
		m.pool.adopt(m.Shard, l.groups[m.Group].passages)
	}
}

// withoutAccount is s as it is kept: only the driver needs the account, and a
// Router that is printed must not show it, since fmt calls no methods of
// private fields.
func (s Shard) withoutAccount() Shard {
	s.DSN = ""
	return s
}

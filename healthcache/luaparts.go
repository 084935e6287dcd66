package healthcache

import "fmt"

// What the scripts are made of.

// luaClock gives now in milliseconds, and rfc3339 to write such a moment.
const luaClock = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function rfc3339(ms)
  local rest = math.floor(ms / 1000)
  local days, year, month = math.floor(rest / 86400), 1970, 1
  rest = rest % 86400
  local function leap() return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0) end
  while days >= (leap() and 366 or 365) do
    days = days - (leap() and 366 or 365)
    year = year + 1
  end
  local lengths = {31, leap() and 29 or 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
  while days >= lengths[month] do
    days = days - lengths[month]
    month = month + 1
  end
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, days + 1,
    math.floor(rest / 3600), math.floor(rest % 3600 / 60), rest % 60, ms % 1000)
end
`

// luaBounded reads a text, false where there is none, and no more of it than shows
// that it is too long: whoever put megabytes into a key shall not have every
// instance fetch them.
var luaBounded = fmt.Sprintf(`
local function bounded(key)
  if redis.call('TYPE', key).ok ~= 'string' then return false end
  return redis.call('GETRANGE', key, 0, %d)
end
`, maxRecordBytes)

// maxEntries and maxEntryBytes are the most that is fetched of a list that the
// fleet keeps: instances, letters, changes. Instances and letters have the name of
// an instance in them.
const (
	maxEntries    = 4096
	maxEntryBytes = 2 * maxTextBytes
)

// luaShort leaves out what is longer than anything that the fleet writes.
var luaShort = fmt.Sprintf(`
local most, longest = %d, %d
local function short(list)
  local out = {}
  for _, text in ipairs(list) do
    if #text <= longest then out[#out + 1] = text end
  end
  return out
end
`, maxEntries, maxEntryBytes)

// luaOfKind makes room for what has to be of a type: whatever else stands there
// would be an error for ever.
const luaOfKind = `
local function ofkind(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= kind then redis.call('DEL', key) end
end
`

//! The scripts that the server runs, each as a whole before any other command.

use redis::Script;

/// All scripts of a store.
pub(super) struct Scripts {
    pub(super) commit: Script,
    pub(super) read: Script,
    pub(super) clear: Script,
    pub(super) delete: Script,
    pub(super) lease: Script,
    pub(super) release: Script,
    pub(super) expired_in_folder: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            commit: Script::new(COMMIT),
            read: Script::new(READ),
            clear: Script::new(CLEAR),
            delete: Script::new(DELETE),
            lease: Script::new(LEASE),
            release: Script::new(RELEASE),
            expired_in_folder: Script::new(EXPIRED_IN_FOLDER),
        }
    }
}

/// Keys: head, entries, conversations by change, conversations by expiry, those of the folder by change.
///
/// A script that fails midway is not taken back, so everything is checked before the first write. Epochs
/// stay text: Lua would print large numbers in another form.
const COMMIT: &str = r"
local expects, epoch, next = ARGV[1], ARGV[2], ARGV[3]
local run, number, is_repeated = ARGV[4], tonumber(ARGV[5]), ARGV[6] == '1'
local id, time, state_index = ARGV[7], ARGV[8], ARGV[9]
local changes_agent, agent, changes_details, details = ARGV[10], ARGV[11], ARGV[12], ARGV[13]
local changes_expiry, expires, new_epoch = ARGV[14], ARGV[15], ARGV[16]
local first_entry = 17

local head = redis.call('HMGET', KEYS[1], 'epoch', 'next', 'first')
local is_expected = expects == 'any'
    or (expects == 'new' and not head[1])
    or (expects == 'at' and head[1] == epoch and head[2] == next)

local from
if head[1] and number ~= 0 and (is_repeated or not is_expected) then
    if expects ~= 'at' then from = 0
    elseif head[1] == epoch then from = tonumber(next) end
end
if from then
    local start = math.max(from - tonumber(head[3]), 0)
    local stop = redis.call('LLEN', KEYS[2]) - 1
    while stop >= start do
        local part = math.max(start, stop - 31)
        for _, entry in ipairs(redis.call('LRANGE', KEYS[2], part, stop)) do
            local made = cjson.decode(string.match(entry, '^[^\n]*'))
            if made.commit == number and made.run == run then
                return {head[1], head[2]}
            end
        end
        stop = part - 1
    end
end
if not is_expected then return false end

redis.call('ZSCORE', KEYS[3], id)
redis.call('ZSCORE', KEYS[4], id)
redis.call('ZSCORE', KEYS[5], id)
local at = tonumber(head[2] or 0)
for index = first_entry, #ARGV, 1000 do
    redis.call('RPUSH', KEYS[2], unpack(ARGV, index, math.min(index + 999, #ARGV)))
end
if not head[1] then
    head[1] = new_epoch
    redis.call('HSET', KEYS[1], 'epoch', new_epoch, 'first', '0', 'created', time)
end
local after = string.format('%.0f', at + #ARGV - first_entry + 1)
redis.call('HSET', KEYS[1], 'next', after, 'changed', time)
if state_index ~= '' then
    redis.call('HSET', KEYS[1], 'state', string.format('%.0f', at + tonumber(state_index)))
end
if changes_agent == 'set' then redis.call('HSET', KEYS[1], 'agent', agent)
elseif changes_agent == 'unset' then redis.call('HDEL', KEYS[1], 'agent') end
if changes_details == 'set' then redis.call('HSET', KEYS[1], 'details', details) end
if changes_expiry == 'set' then
    redis.call('HSET', KEYS[1], 'expires', expires)
    redis.call('ZADD', KEYS[4], expires, id)
elseif changes_expiry == 'unset' then
    redis.call('HDEL', KEYS[1], 'expires')
    redis.call('ZREM', KEYS[4], id)
end
redis.call('ZADD', KEYS[3], '-' .. time, id)
redis.call('ZADD', KEYS[5], '-' .. time, id)
return {head[1], after}
";

/// Keys: head, entries. Arguments: the first position, and the one after the last.
const READ: &str = r"
local first = tonumber(redis.call('HGET', KEYS[1], 'first') or 0)
local start = math.max(tonumber(ARGV[1]), first)
local stop = tonumber(ARGV[2]) - 1
if stop < start then return {'0', {}} end
local entries = redis.call('LRANGE', KEYS[2], start - first, stop - first)
return {string.format('%.0f', start), entries}
";

/// Keys as for a commit. Arguments: the name, the time, and the new epoch.
const CLEAR: &str = r"
local next = redis.call('HGET', KEYS[1], 'next')
if not next then return end
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[1], 'epoch', ARGV[3], 'first', next, 'changed', ARGV[2])
redis.call('HDEL', KEYS[1], 'state', 'agent', 'details', 'expires')
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZADD', KEYS[3], '-' .. ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[5], '-' .. ARGV[2], ARGV[1])
";

/// Keys as for a commit. Arguments: the name, and the time by which it must have expired, if any.
const DELETE: &str = r"
if ARGV[2] then
    local expires = tonumber(redis.call('HGET', KEYS[1], 'expires'))
    if not expires or expires > tonumber(ARGV[2]) then return 0 end
end
local deleted = redis.call('DEL', KEYS[1])
redis.call('UNLINK', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[5], ARGV[1])
return deleted
";

/// Key: the lease. Arguments: the owner, and milliseconds.
const LEASE: &str = r"
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1
";

/// Key: the lease. Argument: the owner.
const RELEASE: &str = r"
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
";

/// Keys: conversations by expiry, those of a folder by change. Argument: the time. Goes through the smaller list: Redis 6.0
/// has no ZINTER.
const EXPIRED_IN_FOLDER: &str = r"
local smaller = KEYS[1]
if redis.call('ZCARD', KEYS[2]) < redis.call('ZCARD', smaller) then smaller = KEYS[2] end
local expired = {}
for _, id in ipairs(redis.call('ZRANGE', smaller, 0, -1)) do
    local expires, is_in_folder = redis.call('ZSCORE', KEYS[1], id), redis.call('ZSCORE', KEYS[2], id)
    if expires and is_in_folder and tonumber(expires) <= tonumber(ARGV[1]) then
        table.insert(expired, id)
    end
end
return expired
";

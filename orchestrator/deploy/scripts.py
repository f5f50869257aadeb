"""The POSIX shell that the process runtime runs on a host: constants, every value comes in as a positional parameter.

A server's folder holds

    state.json   what gate0 says of it: labels, words, binary's digest; no secret
    env          `export NAME='value'` lines, 0600, deleted by the server's own shell before it becomes the server
    server.log   its stdout and stderr
    pid          server pid, its start in clock ticks, the supervisor's pid and start, boot id, time of start
    exit         exit code as a shell tells it (128 + signal), time of end

A pid alone proves nothing, because numbers are used again: with the boot id and the start time from /proc it does.
"""

from __future__ import annotations

_IS_ALIVE = """
is_alive() {  # pid, start in ticks: the same process, and no zombie
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    set -f
    set -- "$2" ${stat##*) }
    [ "$2" != Z ] && [ "$2" != X ] && [ "${21}" = "$1" ]
}
"""

SUPERVISE = """
dir=$1; shift
start_of() { stat=$(cat "/proc/$1/stat" 2>/dev/null); set -f; set -- ${stat##*) }; printf '%s' "${20:--}"; }
( . "$dir/env" && rm -f -- "$dir/env" && exec setsid "$@" ) </dev/null >"$dir/server.log" 2>&1 &
pid=$!
printf '%s %s %s %s %s %s\\n' "$pid" "$(start_of "$pid")" "$$" "$(start_of "$$")" \\
    "$(cat /proc/sys/kernel/random/boot_id)" "$(date -u +%FT%TZ)" >"$dir/pid.new" && mv -- "$dir/pid.new" "$dir/pid"
wait "$pid"
printf '%s %s\\n' "$?" "$(date -u +%FT%TZ)" >"$dir/exit.new" && mv -- "$dir/exit.new" "$dir/exit"
"""
"""Parameters: folder, then the server's words. Stays until the server has ended, to write down how."""

NAME_TAKEN = 73
NOT_STARTED = 74

START = """
root=$1 name=$2 state=$3 supervise=$4; shift 4
umask 077
new=$root/.new.$$
mkdir -p -- "$root" && mkdir -- "$new" || exit
printf '%s\\n' "$state" >"$new/state.json" && cat >"$new/env" && : >"$new/server.log" || { rm -rf -- "$new"; exit 1; }
mv -T -- "$new" "$root/$name" 2>/dev/null || { rm -rf -- "$new"; exit 73; }
setsid sh -c "$supervise" sh "$root/$name" "$@" </dev/null >/dev/null 2>&1 &
tries=0
until [ -s "$root/$name/pid" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || { rm -rf -- "$root/$name"; exit 74; }
    sleep 0.05
done
"""
"""Parameters: servers' folder, name, state.json, SUPERVISE, then the server's words; stdin: the env file.

The folder appears whole, by one rename, which is also what claims the name.
"""

LIST = """
root=$1
printf 'boot %s\\n' "$(cat /proc/sys/kernel/random/boot_id)"
show_stat() { stat=$(cat "/proc/$2/stat" 2>/dev/null) && printf '%s %s\\n' "$1" "${stat##*) }"; }
for dir in "$root"/*/; do
    dir=${dir%/}
    [ -f "$dir/state.json" ] || continue
    printf 'server %s\\nstate %s\\n' "${dir##*/}" "$(cat "$dir/state.json")"
    if read -r pid start supervisor rest 2>/dev/null <"$dir/pid"; then
        printf 'pid %s %s %s %s\\n' "$pid" "$start" "$supervisor" "$rest"
        show_stat server_stat "$pid"
        show_stat supervisor_stat "$supervisor"
    fi
    [ -f "$dir/exit" ] && printf 'exit %s\\n' "$(cat "$dir/exit")"
done
exit 0
"""
"""Parameter: servers' folder. One `key words` line a fact, each server's after its `server NAME`."""

STOP = (
    _IS_ALIVE
    + """
dir=$1 tenths=$2
read -r pid start supervisor supervisor_start boot rest 2>/dev/null <"$dir/pid" || exit 0
[ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || exit 0
if is_alive "$pid" "$start"; then
    kill -s TERM -- "-$pid" 2>/dev/null
    while [ "$tenths" -gt 0 ] && is_alive "$pid" "$start"; do tenths=$((tenths - 1)); sleep 0.1; done
fi
# The group outlives its leader when an engine leaves workers behind. While one of them lives the leader's number
# cannot be given away, so a process of that number with another start means: no group of ours is left.
if [ ! -e "/proc/$pid" ] || is_alive "$pid" "$start"; then kill -s KILL -- "-$pid" 2>/dev/null; fi
tries=0
while [ "$tries" -lt 50 ] && is_alive "$supervisor" "$supervisor_start"; do tries=$((tries + 1)); sleep 0.1; done
if is_alive "$pid" "$start"; then echo "process $pid is still alive after SIGKILL" >&2; exit 75; fi
"""
)
"""Parameters: the server's folder, grace in tenths of a second. TERM to its process group, then KILL.

`kill -s NAME --` is the one form for groups that dash, bash and busybox all take.
"""

FIND_BINARY = """
name=$1
case $name in "~/"*) name=$HOME/${name#"~/"} ;; esac
path=$(command -v "$name") || path=$HOME/.local/bin/$name
[ -f "$path" ] && [ -x "$path" ] || exit 1
printf '%s\\n' "$path"
sha256sum <"$path"
"""
"""Parameter: a name on the PATH (or in ~/.local/bin) or a path. Prints the path, then its SHA-256."""

ASKED = "\ngate0-asked "

ASK = r"""
limit=$1 kind=$2 program=$3; shift 3
if [ "$kind" = python ]; then
    { IFS= read -r first; IFS= read -r second; } <"$program" 2>/dev/null
    quoted=${second#*\"}
    case $first in
        "#!/bin/sh"*) program=${quoted%%\"*} ;;  # of a path too long or with a space pip makes a line for the shell
        "#!"*"/env "*) program=${first##*/env } ;;
        "#!"*) program=${first#??}; program=${program%% *} ;;
    esac
fi
exec 3>&1 4<&0
( cat <&4; kill -s KILL 0 ) >/dev/null 2>&1 3>&- &
( sleep "$limit"; kill -s KILL 0 ) >/dev/null 2>&1 3>&- 4<&- &
errors=$("$program" "$@" </dev/null 2>&1 >&3 4<&-)
printf '\ngate0-asked %s\n' "$?"
printf '%s' "$errors" | tail -c 4000
kill -s KILL 0
"""
"""Parameters: limit in seconds, `program` or `python`, the program, its words. It is run once, or the Python that it is
written for is. stdout is passed on as it comes, then comes a line ASKED with the exit code, then the end of stderr.

All of it is the one process group that a stream's command has for itself: the group is killed when it has answered,
when stdin ends (the connection is gone, or the asker has left), and at the limit.
"""

/**
 * Ends process groups when this process dies without a chance to end them, as by SIGKILL: a shell reads their ids from a pipe that
 * only this process holds, and sees its end. Spec: TO-119. `ShellProcess.ts` runs the groups.
 */
import { type ChildProcess, spawn } from "node:child_process"

/** Asks the groups that were not forgotten to end, and kills them two seconds later. */
const script = `groups=" "
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="\${groups%% $group *} \${groups#* $group }" ;; esac ;;
  esac
done
left=
for group in $groups; do kill -TERM "-$group" && left="$left $group"; done
[ -n "$left" ] && sleep 2
for group in $left; do kill -KILL "-$group"; done`

let guard: ChildProcess | undefined

/** One shell for all groups of this process, in a group of its own: a signal of the terminal does not end it. */
const started = (): ChildProcess => {
  const stdio: ["pipe", "ignore", "ignore"] = ["pipe", "ignore", "ignore"]
  const child = spawn("/bin/sh", ["-c", script], { cwd: "/", env: {}, detached: true, stdio })
  const lost = () => {
    if (guard === child) guard = undefined
  }
  child.on("error", lost)
  child.on("exit", lost)
  child.stdin?.on("error", lost)
  child.unref()
  return child
}

const tell = (line: string) => {
  guard ??= started()
  guard.stdin?.write(line)
}

/** From now on the group ends with this process. */
export const watch = (group: number): void => tell(`+ ${group}\n`)

/** The group has ended. */
export const forget = (group: number): void => tell(`- ${group}\n`)

/**
 * A slow connection, such as one over SSH: runs a command in a terminal of its own, and passes on what is typed and drawn after a
 * delay, what is drawn in pieces of a few bytes. Words: columns, rows, milliseconds, the command.
 */
import { spawn } from "node:child_process"

const [columns, rows, delay, ...command] = process.argv.slice(2)
const quoted = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ")
const child = spawn("script", ["-qefc", `stty cols ${columns} rows ${rows}; exec ${quoted}`, "/dev/null"], {
  stdio: ["pipe", "pipe", "inherit"]
})

const late = (from, to, size) => {
  const parts = []
  from.on("data", (bytes) => {
    for (let at = 0; at < bytes.length; at += size) {
      parts.push(bytes.subarray(at, at + size))
      // Timers that are late may end in another order than they began.
      setTimeout(() => to.write(parts.shift()), Number(delay))
    }
  })
}

process.stdin.setRawMode(true)
late(process.stdin, child.stdin, Number.POSITIVE_INFINITY)
late(child.stdout, process.stdout, 7)
child.stdin.on("error", () => undefined)
process.stdout.on("error", () => undefined)
// The terminal is gone: `script` goes on without one.
process.on("SIGHUP", () => child.kill())
child.once("close", (code) => {
  setTimeout(
    () => {
      process.stdin.setRawMode(false)
      process.exit(code ?? 1)
    },
    Number(delay) + 50
  )
})

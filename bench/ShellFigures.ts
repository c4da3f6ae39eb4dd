/** The figures of live shells: `echo hi` beside a raw channel on this machine, over SSH and in a container; and a large output. */
import * as BashCalls from "./BashCalls.ts"
import type { Figure } from "./Figures.ts"
import { atMost, type Options } from "./Options.ts"
import * as Redaction from "./Redaction.ts"
import * as RemoteShells from "./RemoteShells.ts"
import * as Shell from "./Shell.ts"

const echo = (
  place: string,
  bar: number,
  { live, raw, result, shortest }: RemoteShells.Result
): ReadonlyArray<Figure> => [
  { name: `echo hi${place}, raw`, value: raw, unit: "ms", note: "text to bash and its answer, no frame" },
  { name: `echo hi${place}, shortest frame`, value: shortest, unit: "ms", note: "with exit code and folder" },
  { name: `echo hi${place}, shortest frame against raw`, value: shortest / raw, unit: "x" },
  { name: `echo hi${place}, a live shell's bytes and code`, value: live, unit: "ms" },
  { name: `echo hi${place}, Shells.exec`, value: result, unit: "ms" },
  { name: `echo hi${place}, against raw`, value: result / raw, unit: "x", bar: atMost(bar) }
]

export const shell = async ({ quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const megabytes = quick ? 40 : 200
  const found = await Shell.measure(rounds, megabytes)
  const bash = await BashCalls.measure(rounds)
  const large = `${megabytes} MB through 100,000 characters`
  return [
    ...echo("", 2, found),
    { name: "echo hi, a process per command", value: found.process, unit: "ms" },
    { name: "a call of bash, a process per command", value: bash.process, unit: "ms", note: "echo hi" },
    { name: "a call of bash, a live shell", value: bash.live, unit: "ms", note: "echo hi, recorded on disk" },
    { name: "a call of bash, live against process", value: bash.live / bash.process, unit: "x", bar: atMost(1) },
    { name: large, value: found.rate, unit: "MB/s" },
    { name: `${large}, memory`, value: found.memory, unit: "MB", note: "above the start" },
    ...echo(" over SSH", 1.5, await RemoteShells.overSsh(rounds)),
    ...echo(" in a container", 1.5, await RemoteShells.inContainer(rounds))
  ]
}

/** What lines with secrets cost against plain text, within the process; the pipe and the record come on top of both. */
export const redaction = async ({ quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const { plain, ...others } = Redaction.measure(rounds, quick ? 1 : 5)
  return [
    { name: "output of plain text", value: plain, unit: "ms", note: "processor time of a megabyte" },
    ...Object.entries(others).map(([kind, value]): Figure => ({
      name: `output of lines: ${kind}`,
      value: value / plain,
      unit: "x"
    }))
  ]
}

/** `daybook rerun`: sends a recorded request again, to its model or to others, and compares the answers. Spec: CL-790..CL-792. */
import { Effect, Stream } from "effect"
import { rerun as again, type RerunAnswer } from "@daybook/core/session/Sessions"
import { modelText } from "@daybook/log/domain/Values"
import * as Flags from "../arguments/Flags.ts"
import * as PromptWords from "../arguments/PromptWords.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { readModel, sessionWord, withConfigured } from "../host/Runtime.ts"
import { elapsed } from "../render/CallText.ts"
import { columns, oneLine, visible } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { ActivityFailed } from "../support/Errors.ts"
import { Output, writeJson } from "../terminal/Output.ts"

/** One answer's figures. */
const row = ({ calls, cost, durationMs, error, model, run, text, tokens, turns, unanswered }: RerunAnswer) => [
  run === 0 ? "recorded" : `run ${run}`,
  oneLine(modelText(model), 60),
  durationMs < 1_000 ? `${durationMs} ms` : elapsed(durationMs),
  `${tokens.input} in, ${tokens.output} out`,
  `$${cost.toFixed(4)}`,
  `${many(turns, "turn")}, ${many(calls.length, "call")}`,
  oneLine(
    error !== undefined
      ? `failed: ${error}`
      : unanswered !== undefined
        ? `calls ${unanswered.join("; ")}, which the record has no result for`
        : text,
    200
  )
]

/** The whole text of an answer, under its name. */
const textOf = ({ model, run, text }: RerunAnswer): string =>
  text.trim() === ""
    ? ""
    : `\n== ${run === 0 ? "recorded" : `run ${run}`}  ${oneLine(modelText(model))}\n${visible(text.trim())}\n`

const given = {
  session: sessionWord,
  at: Flags.integer("at", "SEQ", "the request of the turn with this event (default: the last)", 0),
  models: Flags.repeated("model", "P/M", "ask this model; may be repeated (default: the one that answered)", (text) =>
    text === "" ? Effect.fail("P/M") : Effect.succeed(text)
  ),
  times: Flags.integer("times", "N", "ask each model this often (default: 1)", 1),
  system: Flags.text("system", "TEXT", "another system text, in place of the recorded ones"),
  tools: Flags.repeated(
    "tools",
    "PATTERN=on|off",
    "leave out recorded tools by name pattern; the last match decides; may be repeated",
    PromptWords.parseTool
  ),
  json: Flags.json
}

const run = Effect.fn("Command.rerun")(function* ({
  at,
  json,
  models,
  session,
  system,
  times,
  tools
}: FieldValues<typeof given>) {
  const output = yield* Output
  const { id: sessionID } = yield* SessionReference.resolveHere(session)
  const refs = yield* Effect.forEach(models, readModel)
  const answers: Array<RerunAnswer> = []
  yield* again({
    sessionID,
    ...(at === undefined ? {} : { at }),
    ...(refs.length === 0 ? {} : { models: refs }),
    ...(times === undefined ? {} : { times }),
    ...(system === undefined ? {} : { system }),
    tools: Object.fromEntries(tools)
  }).pipe(
    Stream.runForEach((answer) => {
      answers.push(answer)
      return json
        ? writeJson(answer)
        : output.note(answer.run === 0 ? "" : `${oneLine(modelText(answer.model))}: run ${answer.run} is done\n`)
    })
  )
  if (!json) yield* output.write(`${columns(answers.map(row))}${answers.map(textOf).join("")}`)
  const failed = answers.filter(({ error, run }) => run > 0 && error !== undefined).length
  const asked = answers.length - 1
  if (failed === asked) {
    return yield* new ActivityFailed({
      message: `no model answered: ${answers.at(-1)?.error ?? ""}`,
      type: "ProviderFailed"
    })
  }
}, withConfigured)

export const rerun = verb({
  name: "rerun",
  summary: "send a recorded request again, to its model or others, and compare the answers",
  words: "SESSION",
  details: [
    "The request is that of the turn with the event --at, or the last one, exactly as it was recorded: system text, " +
      "messages, tools. Nothing else happens: a call gets the result that the record has for the same call, and a call " +
      "without one ends the run. Nothing is stored.",
    "It prints the record and each run, with time, tokens, cost and the text; with --json, a line for each answer."
  ],
  given,
  examples: [
    ["daybook rerun triage --model mistral/mistral-large-latest --times 3", "compares three answers with the record"],
    ["daybook rerun triage --at 41 --json | jq .text", "asks the request of event 41 again"]
  ],
  run
})

/** Renders a durable event as a line: JSON for programs, columns for people. Pure. Spec: CL-12, CL-13 in specs/cli.md. */
import { withheldText } from "@daybook/log/domain/Message"
import { type EventIn, type EventOfType, inOrder, type SessionEvent } from "@daybook/log/events/SessionEvents"
import * as WatchText from "@daybook/shell/record/WatchText"
import { elapsed } from "./CallText.ts"
import { dateTime, jsonLine, oneLine } from "./Plain.ts"
import { limits } from "./SessionLine.ts"

/** The size of the request before, and of the summary. */
export const compacted = ({ text, tokensBefore }: EventOfType<"session.next.compaction.ended">["data"]): string => {
  const before = tokensBefore === undefined ? "" : `the request had ${Math.round(tokensBefore)} tokens, `
  return `summarized: ${before}the summary has ${text.length} characters`
}

/** The event with the keys in their documented order (CL-12). */
export const eventJson = (event: SessionEvent, terminal = false): string => jsonLine(inOrder(event), terminal)

/** Sequence number, time, short type and content, truncated to a line (CL-13). */
export const eventLine = (event: SessionEvent): string => {
  const type = event.type.replace(/^session\.next\./, "")
  return `${String(event.seq).padStart(6)}  ${dateTime(event.created)}  ${type.padEnd(22)}  ${oneLine(summary(event), 96)}`
}

const summary = (event: SessionEvent): string => {
  switch (event.type) {
    case "session.created":
      return [event.data.title, event.data.location.directory].filter((part) => part !== undefined).join("  ")
    case "session.next.prompt.admitted":
    case "session.next.prompted":
      return `${event.data.messageID} (${event.data.delivery}) ${event.data.prompt.text}`
    case "session.next.prompt.promoted":
      return `${event.data.messageID} ${event.data.prompt.text}`
    case "session.next.text.ended":
    case "session.next.reasoning.ended":
    case "session.next.context.updated":
    case "session.next.synthetic":
    case "session.next.tool.input.ended":
      return event.data.text
    case "session.next.tool.input.started":
      return `${event.data.callID} ${event.data.name}`
    case "session.next.tool.called":
      return `${event.data.callID} ${event.data.tool} ${JSON.stringify(event.data.input)}`
    case "session.next.tool.success":
      return `${event.data.callID} ${firstText(event.data.content) ?? JSON.stringify(event.data.structured)}`
    case "session.next.tool.failed":
      return `${event.data.callID} ${event.data.error.message}`
    case "session.next.step.started":
      return `${event.data.agent} ${event.data.model.providerID}/${event.data.model.id}`
    case "session.next.step.ended": {
      return `${event.data.finish} ${used(event.data)}`
    }
    case "session.next.step.failed":
      return [event.data.error.message, used(event.data)].filter(Boolean).join("; ")
    case "session.next.retried":
      return retryLine(event.data)
    case "session.next.request.framed":
      return framed(event)
    case "session.next.instructions.discovered":
      return event.data.paths.join(" ")
    case "session.next.compaction.started":
      return `${event.data.messageID} (${event.data.reason})`
    case "session.next.compaction.requested":
      return event.data.messageID
    case "session.next.compaction.ended":
      return `${compacted(event.data)}; ${event.data.text}`
    case "session.next.compaction.failed":
      return `${event.data.messageID} ${event.data.error.message}`
    case "session.next.context.pruned":
      return event.data.through < 0 ? "all results are shown" : `results up to ${event.data.through} are not shown`
    case "session.next.context.edited": {
      const { callID, content, messageID } = event.data
      const target = callID === undefined ? messageID : `${messageID} ${callID}`
      return `${target} ${content === undefined ? "is not shown" : "is shown with another content"}`
    }
    case "session.next.part.withheld":
      return `${event.data.messageID} ${withheldText(event.data)}`
    case "session.next.leaf.moved":
      return event.data.messageID === undefined ? "before the first message" : `after ${event.data.messageID}`
    case "session.next.branch.summarized":
      return `${event.data.messageID} ${event.data.text}`
    case "session.next.labeled":
      return `${event.data.messageID} ${event.data.label === undefined ? "without a label" : event.data.label}`
    case "session.next.forked":
      return [event.data.from, event.data.messageID].filter(Boolean).join(" ")
    case "session.next.files.changed":
      return event.data.problem === undefined
        ? `${event.data.count} ${event.data.files.join(" ")}`
        : `no snapshot: ${event.data.problem}`
    case "session.next.files.restored": {
      const { changed, conflicts } = event.data.counts
      const redone = event.data.redoes === undefined ? "" : `redo of ${event.data.redoes}: `
      return `${redone}${changed} restored, ${conflicts} left ${event.data.files.join(" ")}`
    }
    case "session.next.question.answered":
      return `${event.data.callID} ${event.data.answers.join(" | ")}`
    case "session.next.question.dismissed":
      return event.data.callID
    case "session.next.permission.decided": {
      const { callID, decision, permission, resources } = event.data
      return `${callID} ${decision} ${permission} ${resources.join(" | ")}`
    }
    case "session.next.permission.revoked":
      return `${event.data.number} ${event.data.permission} ${event.data.resource}`
    case "session.next.budget.set":
      return limits(event.data.budget)
    case "session.next.imported": {
      const { log, record } = event.data
      const progress = log === undefined ? "" : `${log.records} records of ${log.dialect} ${log.id}`
      return [record?.key, progress].filter(Boolean).join(" ")
    }
    case "session.next.shell.opened":
    case "session.next.shell.executed":
    case "session.next.shell.blocked":
    case "session.next.shell.checkpointed":
    case "session.next.shell.restored":
    case "session.next.shell.closed":
      return WatchText.eventLine(event, (command) => oneLine(command, 48))
    case "session.next.activity.started":
      return `${event.data.activityID} (${event.data.trigger})`
    case "session.next.activity.settled":
      return [event.data.activityID, event.data.outcome, event.data.error?.message].filter(Boolean).join(" ")
    default:
      event satisfies EventIn<"about" | "prompts" | "texts" | "calls">
      return JSON.stringify(event.data)
  }
}

const framed = ({ data }: EventOfType<"session.next.request.framed">): string => {
  const { baselineSeq, hash, settings, system, tools } = data
  const changed = [
    system === undefined ? [] : [`${system.length} system texts`],
    baselineSeq === undefined ? [] : [`baseline of event ${baselineSeq}`],
    tools === undefined ? [] : [`${tools.offered.length} tools, ${tools.defined.length} new`],
    settings === undefined ? [] : [`settings ${JSON.stringify(settings)}`]
  ]
  return [hash.slice(0, 8), changed.flat().join(", ")].join(" ")
}

const used = ({ estimated, tokens }: Pick<EventOfType<"session.next.step.failed">["data"], "estimated" | "tokens">) =>
  tokens === undefined ? "" : `${tokens.input} in, ${tokens.output} out${estimated === true ? " (estimated)" : ""}`

/** Why a request failed, and when it is made again: `the provider is overloaded (HTTP 529); next attempt in 12 s (3 of 8)`. */
export const retryLine = ({
  attempt,
  attempts,
  error,
  waitMs
}: EventOfType<"session.next.retried">["data"]): string => {
  const wait = waitMs === undefined ? "" : ` in ${elapsed(waitMs + 999)}`
  const place = `${attempt + 1}${attempts === undefined ? "" : ` of ${attempts}`}`
  return `${failedAs(error.statusCode)}; next attempt${wait} (${place}): ${error.message}`
}

const failedAs = (status: number | undefined): string => {
  switch (status) {
    case undefined:
      return "the request failed"
    case 429:
      return "the provider limits requests (HTTP 429)"
    case 503:
    case 529:
      return `the provider is overloaded (HTTP ${status})`
    default:
      return `the request failed (HTTP ${status})`
  }
}

const firstText = (content: ReadonlyArray<{ readonly type: string; readonly text?: string }>): string | undefined =>
  content.find((part) => part.type === "text")?.text

/** One session: what it is, its views as tabs, and the prompt box. Spec: IP-8 in specs/inspector.md. */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks"
import type { Session } from "@daybook/log/domain/Message"
import { endOf, stateOf } from "../fold/RunEnd.ts"
import { costText, countText, tokensText } from "../fold/Words.ts"
import type { FollowState } from "../net/Follow.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { hrefOf, type Route, type Tab, tabs } from "../state/Route.ts"
import { useAction } from "./Action.ts"
import { Composer } from "./Composer.tsx"
import { ContextView } from "./ContextView.tsx"
import { EventsView } from "./EventsView.tsx"
import { Badge, Empty, Text, type Tone } from "./Parts.tsx"
import { RequestsView } from "./RequestsView.tsx"
import { SessionActions } from "./SessionActions.tsx"
import { titleOf } from "./Sidebar.tsx"
import { SpendingView } from "./SpendingView.tsx"
import { TimelineView } from "./TimelineView.tsx"
import { TranscriptView } from "./TranscriptView.tsx"
import { TreeView } from "./TreeView.tsx"

/** Views of the folded history. */
const folding: ReadonlySet<Tab> = new Set(["timeline", "requests", "spending", "context"])

/** Milliseconds. */
const permissionsEvery = 1_500

const names: Readonly<Record<Tab, string>> = {
  transcript: "Transcript",
  tree: "Tree",
  timeline: "Timeline",
  requests: "Requests",
  spending: "Spending",
  context: "Context",
  events: "Events"
}

export const stateText: Readonly<Record<FollowState, string>> = {
  connecting: "Connecting",
  reading: "Reading",
  live: "Live",
  lost: "Connection lost, trying again",
  ended: "Ended",
  refused: "The token is not valid",
  removed: "The session was removed",
  expired: "Older events were pruned: reload the page"
}

const tones: Readonly<Record<string, Tone>> = {
  running: "live",
  "needs you": "warn",
  completed: "good",
  failed: "bad",
  "cut off": "warn"
}

const Facts = ({
  record,
  state,
  word
}: {
  readonly record: Session
  readonly word: string
  readonly state: FollowState
}) => {
  const { agent, cost, location, model, tokens } = record
  return (
    <p class="facts">
      <Badge tone={tones[word] ?? (word.startsWith("answer ") ? "warn" : "plain")}>{word}</Badge>
      <span title={location.directory}>
        <Text>{location.directory}</Text>
      </span>
      {agent === undefined ? undefined : <Text>{agent}</Text>}
      {model === undefined ? undefined : <Text>{`${model.providerID}/${model.id}`}</Text>}
      <span>{tokensText(tokens.input + tokens.output)} tokens</span>
      {cost === 0 ? undefined : <span>{costText(cost)}</span>}
      <span role="status" class={`follow ${state}`}>
        {stateText[state]}
      </span>
    </p>
  )
}

/** Why the last activity ended without a whole answer, and the way on. */
const Outcome = ({
  isActive,
  record,
  session
}: {
  readonly record: Session | undefined
  readonly isActive: boolean
  readonly session: OpenSession
}) => {
  const { error, isBusy, run } = useAction()
  const sentence = record === undefined || isActive ? undefined : endOf(record)
  if (sentence === undefined) return undefined
  return (
    <p class="problem cut" role="alert">
      <Text>{sentence}</Text>{" "}
      <button type="button" disabled={isBusy} onClick={() => void run(() => session.resume())}>
        Resume
      </button>
      {error === undefined ? undefined : <Text>{` ${error}`}</Text>}
    </p>
  )
}

const View = ({ route: { at, tab }, session }: { readonly session: OpenSession; readonly route: Route }) => {
  switch (tab) {
    case "transcript":
      return <TranscriptView session={session} at={at} />
    case "tree":
      return <TreeView session={session} />
    case "timeline":
      return <TimelineView session={session} />
    case "requests":
      return <RequestsView session={session} at={at} />
    case "spending":
      return <SpendingView session={session} />
    case "context":
      return <ContextView session={session} at={at} />
    case "events":
      return <EventsView session={session} at={at} />
  }
}

export const SessionView = ({
  isActive,
  needs,
  route,
  session
}: {
  readonly session: OpenSession
  readonly route: Route
  readonly isActive: boolean
  /** Sessions that need a person. */
  readonly needs: number
}) => {
  const record = session.record.value
  const error = session.error.value
  const title = record === undefined ? session.id : titleOf(record)
  const isNeedy = session.questions.value.length + session.permissions.value.length > 0
  const word = record === undefined ? "" : stateOf(record, isActive, isNeedy)
  useEffect(() => {
    document.title = `${needs === 0 ? "" : `(${needs}) `}${title} · Daybook`
  }, [title, needs])
  useEffect(() => {
    if (!isActive) return
    const timer = setInterval(() => void session.lookForPermissions(), permissionsEvery)
    return () => clearInterval(timer)
  }, [session, isActive])
  const views = useRef<HTMLElement>(null)
  // On a narrow screen not all names have room.
  useLayoutEffect(() => {
    views.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" })
  }, [route.tab, session])
  if (record === undefined && error !== undefined) return <Empty>{error.message}</Empty>
  return (
    <>
      <header class="session-head">
        <a class="back" href="#/">
          Sessions
        </a>
        <h2>
          <Text>{title}</Text>
        </h2>
        {record === undefined ? undefined : <Facts record={record} word={word} state={session.state.value} />}
        {record === undefined ? undefined : <SessionActions record={record} session={session} />}
        <nav class="tabs" aria-label="Views" ref={views}>
          {tabs.map((tab) => (
            <a key={tab} href={hrefOf(session.id, tab)} aria-current={tab === route.tab ? "page" : undefined}>
              {names[tab]}
            </a>
          ))}
        </nav>
      </header>
      {session.storyIsCut.value && folding.has(route.tab) ? (
        <p class="soft cut" role="note">
          Older events were pruned: this view begins at the oldest one that is kept.
        </p>
      ) : undefined}
      {folding.has(route.tab) && session.storyState.value !== "live" ? (
        <p class="soft cut" role="status">
          Reading the history: {countText(session.story.count, "event")} so far. The figures grow until all is read.
        </p>
      ) : undefined}
      <Outcome session={session} record={record} isActive={isActive} />
      {route.tab === "transcript" && record?.path !== undefined ? (
        <p class="soft cut" role="note">
          This session has branches, and shows one of them. <a href={hrefOf(session.id, "tree")}>The tree</a> shows all.
        </p>
      ) : undefined}
      <div class="view">
        <View session={session} route={route} />
      </div>
      {route.tab === "transcript" || isNeedy ? <Composer session={session} isRunning={isActive} /> : undefined}
    </>
  )
}

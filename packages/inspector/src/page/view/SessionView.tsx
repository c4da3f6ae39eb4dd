/** One session: what it is, its views as tabs, and the prompt box. Spec: IP-8 in specs/http.md. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { OfferedAgent, OfferedModels } from "@daybook/api/group/ServerApi"
import type { Session } from "@daybook/log/domain/Message"
import { costText, countText, endOf, stateOf, tokensText } from "../fold/Words.ts"
import type { FollowState } from "../net/Follow.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { go, hrefOf, type Route, type Tab, tabs } from "../state/Route.ts"
import { Composer } from "./Composer.tsx"
import { ContextView, RequestsView } from "./RequestsView.tsx"
import { EventsView } from "./EventsView.tsx"
import { TranscriptView } from "./MessageView.tsx"
import { Badge, Empty, Problem, Text, type Tone, useAction, useEvery } from "./Parts.tsx"
import { titleOf } from "./Sidebar.tsx"
import { SpendingView } from "./SpendingView.tsx"
import { TimelineView } from "./TimelineView.tsx"
import { TreeView } from "./TreeView.tsx"

type Choices = { readonly agents: ReadonlyArray<string>; readonly models: ReadonlyArray<string> }

/** The agents and models that the server offers in the session's folder; none if it does not say. */
const offered = async ({ api }: OpenSession, { location }: Session): Promise<Choices> => {
  const [agents, models] = await Promise.all([
    api.get<ReadonlyArray<OfferedAgent>>("/agents", { directory: location.directory }).catch(() => []),
    api.get<OfferedModels>("/models").catch(() => ({ models: [] }))
  ])
  return {
    agents: agents.map(({ name }) => name),
    models: models.models.map(({ model }) => `${model.providerID}/${model.id}`)
  }
}

/** A value with suggestions; Enter or leaving the field sets it. */
const Field = ({
  label,
  onChange,
  suggestions = [],
  value
}: {
  readonly label: string
  readonly value: string
  readonly suggestions?: ReadonlyArray<string>
  readonly onChange: (value: string) => void
}) => {
  const list = `suggested-${label.toLowerCase()}`
  // What is being typed stays while the session goes on and the page is drawn again.
  const [typed, setTyped] = useState<string | undefined>(undefined)
  return (
    <label>
      {label}
      <input
        list={list}
        value={typed ?? value}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        onBlur={() => setTyped(undefined)}
        onChange={({ currentTarget }) => {
          const next = currentTarget.value.trim()
          setTyped(undefined)
          if (next !== "" && next !== value) onChange(next)
        }}
      />
      <datalist id={list}>
        {suggestions.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </label>
  )
}

/** `provider/model`; a model's id may contain slashes. */
const modelRef = (text: string) => {
  const slash = text.indexOf("/")
  return { providerID: text.slice(0, slash), id: text.slice(slash + 1) }
}

export const SessionActions = ({ record, session }: { readonly record: Session; readonly session: OpenSession }) => {
  const { error, isBusy, run } = useAction()
  const [isOpen, setOpen] = useState(false)
  const [choices, setChoices] = useState<Choices>({ agents: [], models: [] })
  const [done, setDone] = useState("")
  useEffect(() => {
    if (isOpen) void offered(session, record).then(setChoices)
  }, [isOpen, session])
  const act = (what: string, work: () => Promise<unknown>) => () => {
    setDone("")
    void run(work).then((isDone) => isDone && setDone(what))
  }
  const { agent = "", model, title = "" } = record
  const button = (name: string, what: string, work: () => Promise<unknown>) => (
    <button type="button" disabled={isBusy} onClick={act(what, work)}>
      {name}
    </button>
  )
  return (
    <div class="fold session-actions">
      <button type="button" class="fold-title" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Actions
      </button>
      {isOpen ? (
        <div class="fold-body">
          <div class="fields">
            <Field label="Title" value={title} onChange={(next) => act("Renamed.", () => session.rename(next))()} />
            <Field
              label="Agent"
              value={agent}
              suggestions={choices.agents}
              onChange={(next) => act("The next turn has this agent.", () => session.switchAgent(next))()}
            />
            <Field
              label="Model"
              value={model === undefined ? "" : `${model.providerID}/${model.id}`}
              suggestions={choices.models}
              onChange={(next) => act("The next turn has this model.", () => session.switchModel(modelRef(next)))()}
            />
          </div>
          <div class="actions">
            {button("Undo", "The last prompt was taken back.", () => session.undo())}
            {button("Redo", "The undo was taken back.", () => session.redo())}
            {button("Compact", "A compaction was requested.", () => session.compact())}
            {button("Fork", "", async () => {
              const forked = await session.fork()
              if (forked !== undefined) go(hrefOf(forked.session.id, "transcript"))
            })}
            {button("Save events", "The events were saved.", () => session.save())}
          </div>
          <p class="soft" role="status">
            {done}
          </p>
          <Problem>{error}</Problem>
        </div>
      ) : undefined}
    </div>
  )
}

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
  full: "Too many readers, trying again",
  unreadable: "The log cannot be read, trying again",
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
  useEvery(permissionsEvery, isActive, () => void session.lookForPermissions())
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

/** What the model was shown, what it answered, what changed since the last turn; the context epochs. Spec: IP-13. */
import { useEffect, useMemo, useState } from "preact/hooks"
import type { Message } from "@daybook/log/domain/Message"
import { type Block, type BlockChange, blocksOf, changesOf, type EncodedRequest } from "../fold/RequestBlocks.ts"
import type { Change, Epoch, Turn } from "../fold/Story.ts"
import { clockText, countText, tokensText, visible } from "../fold/Words.ts"
import { ApiError } from "../net/Api.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { go, hrefOf } from "../state/Route.ts"
import { MessageView } from "./MessageView.tsx"
import { Badge, Empty, Fold, Raw, Text, Time, type Tone } from "./Parts.tsx"

const changeTones: Readonly<Record<Change["kind"], Tone>> = {
  updated: "plain",
  compacted: "warn",
  pruned: "warn",
  instructions: "plain",
  tools: "plain"
}

const EpochView = ({
  epoch: { at, baseline, changes, seq, sources },
  isLast,
  number,
  sessionID
}: {
  readonly epoch: Epoch
  readonly number: number
  readonly isLast: boolean
  readonly sessionID: string
}) => (
  <li class="epoch">
    <header>
      <h3>Epoch {number}</h3>
      <Time at={at}>{clockText(at)}</Time>
      <a href={hrefOf(sessionID, "events", seq)}>event {seq}</a>
      <span class="soft">
        <Text>{sources.join(", ")}</Text>
      </span>
    </header>
    <Fold title={`Baseline, ${countText(baseline.length, "character")}`} open={isLast}>
      {() => <Raw label={`Baseline of epoch ${number}`} text={baseline} />}
    </Fold>
    {changes.map((change) => (
      <Fold
        key={change.seq}
        title={
          <>
            <Badge tone={changeTones[change.kind]}>{change.kind}</Badge>{" "}
            <Time at={change.at}>{clockText(change.at)}</Time>
            <span class="one-line soft">
              <Text>{change.text.slice(0, 160)}</Text>
            </span>
          </>
        }
      >
        {() => <Raw label={`Change at event ${change.seq}`} text={change.text} />}
      </Fold>
    ))}
  </li>
)

export const ContextView = ({ session }: { readonly session: OpenSession; readonly at: number | undefined }) => {
  useEffect(() => session.needStory(), [session])
  const version = session.storyVersion.value
  const { dropped, epochs } = session.story.epochs
  if (epochs.length === 0) {
    return <Empty>{session.storyState.value === "live" ? "No context was told yet." : "Reading the history…"}</Empty>
  }
  return (
    <div class="scroller context" tabIndex={0} role="region" aria-label="Context epochs" data-version={version}>
      {dropped === 0 ? undefined : (
        <p class="soft">{`${dropped.toLocaleString("en-US")} older entries are`} not kept: see the events.</p>
      )}
      <ol reversed class="epochs">
        {epochs
          .map((epoch, index) => (
            <EpochView
              key={epoch.seq}
              epoch={epoch}
              number={index + 1}
              isLast={index === epochs.length - 1}
              sessionID={session.id}
            />
          ))
          .toReversed()}
      </ol>
    </div>
  )
}

interface Loaded {
  readonly blocks: ReadonlyArray<Block>
  readonly request: EncodedRequest
  readonly changes: ReadonlyArray<BlockChange> | undefined
  readonly answer: Message | null
}

const nothing: ReadonlyMap<string, string> = new Map()

/** The request of a turn, with its answer and the difference to the turn before. */
const load = async (
  session: OpenSession,
  turn: Turn,
  before: Turn | undefined,
  signal: AbortSignal
): Promise<Loaded> => {
  const requestAt = (at: number) => session.api.get<EncodedRequest>(`${session.path}/request`, { at }, signal)
  const [request, earlier, answer] = await Promise.all([
    requestAt(turn.seq),
    before === undefined ? undefined : requestAt(before.seq),
    session.api.get<Message | null>(`${session.path}/messages/${turn.messageID}`, {}, signal)
  ])
  const blocks = blocksOf(request)
  return { request, blocks, answer, changes: earlier === undefined ? undefined : changesOf(blocksOf(earlier), blocks) }
}

const tones: Readonly<Record<BlockChange["change"], Tone>> = {
  same: "plain",
  added: "good",
  removed: "bad",
  changed: "warn"
}
const signs = { same: "\u00a0", added: "+", removed: "\u2212" } as const

const title = ({ kind, title, tokens }: Block) => (
  <>
    <span class="kind">{kind}</span> <Text>{title}</Text>
    {tokens === undefined ? undefined : <span class="soft">{tokensText(tokens)} tokens</span>}
  </>
)

const ChangedBlock = ({ block, change, lines }: BlockChange) => (
  <Fold
    open={change === "added" || change === "changed"}
    title={
      <>
        <Badge tone={tones[change]}>{change}</Badge> {title(block)}
      </>
    }
  >
    {() =>
      change === "changed" ? (
        <pre class="diff" tabIndex={0} role="region" aria-label={`Changes of ${block.title}`}>
          {lines.map((line, index) => (
            <span key={index} class={line.change}>
              {`${signs[line.change]} ${visible(line.text)}\n`}
            </span>
          ))}
        </pre>
      ) : (
        <Raw label={block.title} text={block.text} />
      )
    }
  </Fold>
)

const Shown = ({ blocks, changes }: Loaded) => {
  const [isDifference, setDifference] = useState(true)
  const shown = isDifference && changes !== undefined ? changes : undefined
  const same = shown?.filter(({ change }) => change === "same").length ?? 0
  return (
    <section aria-label="Shown to the model" class="pane">
      <header class="bar">
        <h3>Shown to the model</h3>
        <div class="chips" role="group" aria-label="What is shown">
          <button
            type="button"
            class="chip"
            disabled={changes === undefined}
            aria-pressed={shown !== undefined}
            onClick={() => setDifference(true)}
          >
            Changes
          </button>
          <button type="button" class="chip" aria-pressed={shown === undefined} onClick={() => setDifference(false)}>
            Whole request
          </button>
        </div>
      </header>
      {shown === undefined ? (
        blocks.map((block, index) => (
          <Fold key={index} title={title(block)} open={block.kind === "message" && index >= blocks.length - 4}>
            {() => <Raw label={block.title} text={block.text} />}
          </Fold>
        ))
      ) : (
        <>
          <p class="soft">{countText(same, "part")} as in the turn before.</p>
          {shown
            .filter(({ change }) => change !== "same")
            .map((each, index) => (
              <ChangedBlock key={index} {...each} />
            ))}
        </>
      )}
    </section>
  )
}

const Turns = ({
  current,
  session,
  turns
}: {
  readonly turns: ReadonlyArray<Turn>
  readonly current: number
  readonly session: OpenSession
}) => {
  const at = (index: number) => turns[index]?.seq
  const show = (seq: number | undefined) => {
    if (seq !== undefined) go(hrefOf(session.id, "requests", seq))
  }
  return (
    <div class="bar">
      <button type="button" disabled={current <= 0} onClick={() => show(at(current - 1))}>
        Earlier
      </button>
      <label>
        <span class="hidden">Turn</span>
        <select value={String(at(current))} onChange={({ currentTarget }) => show(Number(currentTarget.value))}>
          {turns.slice(Math.max(0, current - 250), current + 250).map(({ at, model, seq }, index) => (
            <option key={seq} value={String(seq)}>
              {`Turn ${Math.max(0, current - 250) + index + 1}, ${clockText(at)}, ${model}`}
            </option>
          ))}
        </select>
      </label>
      <button type="button" disabled={current >= turns.length - 1} onClick={() => show(at(current + 1))}>
        Later
      </button>
      <span class="soft">of {countText(turns.length, "turn")}</span>
      <a href={hrefOf(session.id, "events", at(current))}>event {at(current)}</a>
    </div>
  )
}

export const RequestsView = ({ at, session }: { readonly session: OpenSession; readonly at: number | undefined }) => {
  const version = session.storyVersion.value
  const { turns } = session.story
  useEffect(() => session.needStory(), [session])
  const current = useMemo(
    () =>
      at === undefined
        ? turns.length - 1
        : Math.max(
            0,
            turns.findLastIndex(({ seq }) => seq <= at)
          ),
    [at, turns.length, version]
  )
  const turn = turns[current]
  const [loaded, set] = useState<Loaded | string | undefined>(undefined)
  useEffect(() => {
    if (turn === undefined) return
    const abort = new AbortController()
    set(undefined)
    load(session, turn, turns[current - 1], abort.signal).then(set, (error: unknown) => {
      if (!abort.signal.aborted) set(error instanceof ApiError ? error.message : String(error))
    })
    return () => abort.abort()
  }, [turn?.seq])
  if (turn === undefined) {
    return (
      <Empty>{session.storyState.value === "live" ? "The model was not asked yet." : "Reading the history…"}</Empty>
    )
  }
  return (
    <div class="requests">
      <Turns turns={turns} current={current} session={session} />
      {loaded === undefined ? (
        <Empty>Reading the request…</Empty>
      ) : typeof loaded === "string" ? (
        <Empty>{loaded}</Empty>
      ) : (
        <div class="panes">
          <Shown {...loaded} />
          <section aria-label="Answer" class="pane">
            <header class="bar">
              <h3>Answer</h3>
              <span class="soft">{tokensText(loaded.request.estimate.total)} tokens shown, estimated</span>
            </header>
            {loaded.answer === null ? (
              <Empty>No answer.</Empty>
            ) : (
              <MessageView message={loaded.answer} sessionID={session.id} growing={nothing} />
            )}
          </section>
        </div>
      )}
    </div>
  )
}

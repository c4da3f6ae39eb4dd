/**
 * What each model server accepts, as data: lowering and the writers read it, nothing else knows a server by name. A host overrides
 * any field. Facts come from the servers' public documentation and error messages. Spec: MD-80..MD-89, MD-120..MD-127 in
 * specs/models.md.
 */

/** The protocols: Messages, Responses, chat completions, and Gemini's own. */
export type Api = "anthropic" | "openai" | "openai-compatible" | "gemini"

/** Media that a message may contain. */
export type Medium = "image" | "pdf"

/** The rules of one server. */
export interface Profile {
  /** A name for people: "DeepSeek". */
  readonly name: string
  readonly api: Api
  /** The address, up to the protocol's path. Absent if each user has another. */
  readonly baseUrl?: string
  /** Environment variables of its key, the usual one first. */
  readonly keys: ReadonlyArray<string>
  /** The hosts that tell this server, with the port if it tells: `api.deepseek.com`, `localhost:11434`; `*` is any one label. */
  readonly hosts: ReadonlyArray<string>
  /** Whether a request meets the chat template of any model, so that the rules of the model's family apply as well. */
  readonly anyModel: boolean
  /**
   * `anywhere`: system messages may stand between others. `leading`: several, before all others. `one`: a single one, so that
   * several are joined.
   */
  readonly system: "anywhere" | "leading" | "one"
  readonly systemRole: "system" | "developer"
  /** Whether user and assistant messages must alternate, so that neighbours are joined. */
  readonly alternates: boolean
  /** Whether an answer must stand between a tool's result and a user message. */
  readonly answersResults: boolean
  /** The form of call ids. `exact`: `length` letters and digits; otherwise at most `length` of the characters in `set`. */
  readonly callIds: { readonly set: "word" | "printable"; readonly length: number; readonly exact: boolean }
  /** The content of an answer that has calls and no text. */
  readonly noText: "" | null
  /** Where thinking stands in an answer, and when it is sent back. */
  readonly thinking: {
    /**
     * A field of the message, by default the one in which it came; `reasoning_details`: a list of objects; `content`: parts of the
     * content.
     */
    readonly field: "reasoning_content" | "reasoning" | "reasoning_details" | "content"
    /** `calls`: with answers that have calls. */
    readonly back: "never" | "calls" | "always"
    /** Whether an answer to which `back` applies is rejected without the field, or with an empty one. */
    readonly required: boolean
  }
  /** Google's signature for calls of other models: the first call of each answer is rejected without one. */
  readonly signature?: string
  /** How a level of effort is asked for. `thinking.type` switches thinking on and off, `thinking` has a level as well. */
  readonly effort:
    | "reasoning_effort"
    | "reasoning.effort"
    | "thinking"
    | "thinking.type"
    | "enable_thinking"
    | "chat_template_kwargs"
    | "none"
  /** Media that its servers take, unless the catalogue knows the model. */
  readonly media: ReadonlyArray<Medium>
  /** Most pictures of one request. */
  readonly pictures: number
  readonly maxTokens: "max_tokens" | "max_completion_tokens" | "none"
  /** How the key is sent. `bearer`: `authorization: Bearer`; `own`: the protocol's own header. */
  readonly keyHeader: "own" | "bearer"
  /** Whether Anthropic's cache marks are sent. */
  readonly cacheMarks: boolean
  /** Whether the usage is asked for with `stream_options`. */
  readonly streamOptions: boolean
  /** Whether a tool choice is accepted. Otherwise none is sent: only `none` is, since it forbids calls. */
  readonly toolChoice: boolean
  /** More fields of each request. */
  readonly body: Readonly<Record<string, unknown>>
  /** How a list of models with their windows is read: GET `models`, Ollama's `/api/show`, llama.cpp's `/props`. */
  readonly listing: "models" | "ollama" | "llama.cpp" | "none"
}

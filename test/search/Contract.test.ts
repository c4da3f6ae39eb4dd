/** The contract of `Search` in memory. */
import { promptHistoryContract } from "../contracts/PromptHistoryContract.ts"
import { prunedSearchContract, searchContract } from "../contracts/SearchContract.ts"
import { memorySearch as layer } from "./support/Searching.ts"

searchContract({ layer })
prunedSearchContract({ layer })
promptHistoryContract({ layer })

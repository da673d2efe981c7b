//! Codes from BP1001 to BP1099: the scheduler's API, and those who ask it.

macro_rules! api {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    1001 NotAuthenticated "a request without a token that is known"
        "The scheduler's API is asked with a token, in the header `Authorization: Bearer TOKEN`, unless it is asked on its unix \
         socket by the user that it runs as. The token is missing, misspelt, expired, or was removed. \
         `blueproof-scheduler token create` makes one."
    1002 RoleTooLow "a token whose role does not go so far"
        "A token has a role: read, run, approve or admin, each with the rights of those before it. What was asked needs a higher \
         one."
    1003 RequestMalformed "a request that the API does not understand"
        "A parameter or the body is not what the API's description (`/openapi.json`) says it must be. Where in it is said."
    1004 NotFound "something that is not there"
        "There is no such path, run, attempt, command or file, or it was removed as the retention says."
    1005 ServerNotReached "a server that does not answer"
        "The address that `--server` or the context names was not reached, or did not answer as blueproof-scheduler does, in \
         time. Nothing is known of what became of a request that was under way: sent again with the same key it changes \
         nothing twice."
    1006 TokensUnreadable "a file of tokens that cannot be used"
        "The file of tokens is not there, cannot be read, can be read by others, or holds something else. Until that is mended \
         nobody is let in by a token."
    1007 NotServing "a scheduler that cannot decide"
        "The scheduler follows another one, or its store cannot be written. What it says why stands below; it goes on by itself \
         once that is mended."
    1008 ListensForAll "an address that others reach"
        "The API speaks without TLS, so that tokens and outputs could be read on the way. Have it listen on a unix socket or on \
         a loopback address, with a proxy that speaks TLS before it."
    }};
}

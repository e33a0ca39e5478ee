"""A bilingual grammar of English and regular German.

Every English sentence has exactly one German translation. The translation has these features of German:

- word order: verb-second main clauses with fronted adverbials, verb-final subordinate and relative clauses, participles
  and infinitives at the clause end, separable prefixes (*she calls him* - *sie ruft ihn an*), time before object;
- agreement: gender, case and number on determiners and adjectives (weak, mixed and strong), relative pronouns, verbs;
- one German word for two English words: compounds (*kitchen door* - *Küchentür*), diminutives, feminines; numbers
  (*dreiundzwanzig*);
- a productive vocabulary: agents, -ung, -heit and -keit, un-, -bar, -los, participles, degrees of comparison.

Read in this order: `lexemes` (the types of words), `lexicon/` (the words), `derivation` and `vocabulary` (derived
words), `syntax` (abstract sentences), `english` and `german` (a sentence in words), `phrases`, `clauses` and `sampler`
(the choice of sentences).
"""

"""Given names that are nearly always those of women or of men, in the languages of most books here."""

from __future__ import annotations

from typing import Literal

_FEMALE = frozenset(
    """
    abby abigail ada adela adelaide adele agatha agnes aisha alexandra alice alicia alison amanda amber amelia
    amelie amy ana anastasia angela angelina anita ann anna annabel anne anneliese annette annie antonia april
    ariadne astrid audrey aurora ava barbara beate beatrice beatrix becky bella bernadette bertha beryl bess bessie
    beth betsy betty bianca birgit bridget brigitte brunhilde camilla camille carla carmen carol carolina caroline
    carrie cassandra catalina catherine cathy cecilia celeste celia charlotte chiara chloe christa christina
    christine cindy claire clara clarissa claudia clementine clotilde concha constance cora cordelia cornelia
    cynthia daisy daniela daphne deborah deirdre delia diana diane dinah dolores dora doris dorothea dorothy edith
    edna eileen elaine eleanor eleanora elena elfriede eliza elizabeth ella ellen elodie eloise elsa elsie elspeth
    emilia emilie emily emma erika erin estella estelle esther ethel eugenie eva eve evelyn fanny fatima fay
    felicity fiona flora florence frances francesca francine freya frieda gabriela gabrielle gail georgia georgina
    geraldine gerda gertrude gianna gillian gina ginny gisela giulia gladys gloria grace greta gretchen guinevere
    gwen gwendolen gwendolyn hanna hannah harriet hazel heather hedwig heidi helen helena helga henrietta hermione
    hilda hildegard holly hope ida ilse imogen ina ines inga inge ingeborg ingrid irene iris irma isabel isabella
    isolde ivy jacqueline jana jane janet janice jasmine jean jeanne jemima jennifer jenny jessica jill joan joanna
    johanna josefine josephine joyce juanita judith judy julia juliana julie juliet justine jutta karin katarina
    kate katharina katharine katherine kathleen kathy katie katja kitty klara lara laura lavinia leah lena leonie
    leonora leticia lidia lilian lillian lilly lily linda lisa lise liselotte lizzie lola lotte louisa louise lucia
    lucie lucille lucinda lucy luisa lydia mabel madeleine madeline madge maeve maggie magdalena maisie mallory
    manon manuela marcia margaret margarethe margarita margery margot marguerite maria mariana marianne marie
    marilyn marina marion marjorie marlene martha martina mary mathilda mathilde matilda maud maude maura maureen
    mavis may meg megan melanie melissa mercedes meredith mia michelle mildred mina minerva minnie miranda miriam
    moira molly monica monika monique muriel myra myrtle nadia nadine nancy naomi natalia natalie natasha nell
    nellie nina nora norma odette olga olive olivia ophelia pamela patience patricia paula paulina pauline pearl
    peggy penelope penny petra petronella philippa phoebe phyllis pilar polly portia priscilla prudence rachel
    ramona rebecca regina renata rhoda rita roberta rosa rosalie rosalind rosamund rose rosemary rosie rowena roxane
    ruby ruth sabina sabine sabrina sally samantha sandra sara sarah scarlett selina selma serena sibyl sigrid
    silvia simone siobhan sofia sonia sophia sophie sophy stella stephanie susan susanna susannah susanne susie
    suzanne sybil sylvia tabitha tamara tanja tanya teresa tess tessa thelma theodora therese tilda tilly trudy
    ursula valentina valerie vanessa vera verena veronica veronika victoria viola violet violetta virginia vivian
    vivien viviane wanda wendy wilhelmina winifred yolanda yvette yvonne zelda zoe
    """.split()  # noqa: SIM905  (hundreds of literals would be harder to read)
)
_MALE = frozenset(
    """
    aaron abel abraham achim adam adolf adrian aidan alan alasdair albert alberto aldous alec alejandro alessandro
    alexander alexandre alfonso alfred alfredo algernon alistair allan allen alvaro ambrose amos anders andrew
    andreas andrei andres andy angus anselm anthony antoine anton antonio archibald archie arnold arthur august
    augustus austin axel barnaby barney bartholomew basil bastien ben benedict benjamin bernard bernd bernhard bert
    bertram bill billy bob bobby boris brendan brian bruce bruno byron caleb callum calvin carl carlo carlos casper
    cecil cedric cesar charles charlie chester chris christian christoph christopher clarence claude claus clement
    clifford clive colin connor conrad constantin cornelius craig cyril dan daniel darcy dave david declan dennis
    denis derek desmond dick diego dieter dietrich dimitri dmitri dominic dominik don donald dorian douglas duncan
    earl ebenezer eberhard ed eddie edgar edmund eduardo edward edwin egon elias elijah elliot elmer emil emilio
    emmanuel enrico enrique eric erich ernest ernesto ernst esteban etienne eugene eugen evan ezra fabian federico
    felipe felix ferdinand fergus fernando finn florian floyd francesco francis francisco francois frank frankie
    franz fred freddie frederick friedrich fritz gabriel gareth gary gaston gavin geoffrey george georg georges
    gerald gerard gerhard gideon gilbert giles giovanni giuseppe glen gordon graham gregor gregory guido guillaume
    gunther gus gustav guy hamish hank hannes hans harald harold harry hector heinrich helmut henri henrik henry
    herbert herman hermann horace horatio horst howard hubert hugh hugo humphrey ian ignatius igor isaac isaiah ivan
    ivo jack jacob jacques jake jakob james jamie jan jarvis jason jasper javier jean-pierre jeff jeffrey jeremiah
    jeremy jerome jerry jim jimmy joachim joaquin joe joel johann johannes john johnny jonas jonathan jorge jose
    joseph joshua josiah juan julian julien julius jurgen justin karl kaspar keith ken kenneth kevin klaus konrad
    konstantin kurt lars laurence laurent lawrence leo leon leonard leonardo leopold leroy levi lewis liam lionel
    lloyd lorenzo lothar louis luc luca lucas lucian ludwig luigi luis lukas luke magnus malcolm manfred manuel marc
    marcel marco marcus mario mark markus martin marvin mateo mathias mathieu matt matteo matthew matthias maurice
    max maximilian melvin michael michel miguel mike miles milo mikhail moritz morris moses mortimer nathan
    nathaniel ned neil nicholas nick nicolas nigel nikolai nils noah norbert norman oleg oliver olivier oscar oskar
    otis otto owen pablo paolo pascal patrick paul pedro percival percy peter philip phileas philippe phineas pierre
    pietro pip quentin quincy rafael ralf ralph ramon randolph raphael raul ray raymond reginald reinhard rene
    ricardo richard rick rob robert roberto robin roderick rodrigo roger roland rolf roman romeo ron ronald rory
    rudolf rudolph rufus rupert russell salvador salvatore sam samson samuel sancho santiago saul sean sebastian
    sergei sergio seth seymour siegfried silas silvester simon spencer stanley stefan stephan stephen steve steven
    stewart stuart sven ted terence terry theo theobald theodore thomas thorsten tibor tim timothy titus tobias toby
    todd tom tommy tony tristan ulrich umberto uwe vasily vernon victor viktor vincent vincenzo vladimir volker
    wallace walter warren wayne wendell werner wilbur wilfred wilhelm will willem william willy winston wolfgang
    xavier yuri yves zachary
    """.split()  # noqa: SIM905
)


def gender_of_given(name: str) -> Literal["f", "m", ""]:
    """Of a given name in lower case; blank if it is not known, or if both have it."""
    return "f" if name in _FEMALE else "m" if name in _MALE else ""

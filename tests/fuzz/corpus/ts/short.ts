#BIDMC
@problemName BIDMC32HR
@timestamps false
@missing false
@univariate false
@dimensions 2
@equalLength true
@seriesLength 3
@targetlabel true
@data
0.5,1e-1,-2:1,2,3:91.25
